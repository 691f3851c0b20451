// Uses CPU time in a method that the JVM compiles while it runs.
public class Burn {
    static long burnsInJava(long rounds) {
        long sum = 0;
        for (long i = 0; i < rounds; i++) sum = (sum + i * i) % 1000003;
        return sum;
    }

    public static void main(String[] arguments) {
        long end = System.nanoTime() + (long) (Double.parseDouble(arguments[0]) * 1e9);
        long total = 0;
        while (System.nanoTime() < end) total += burnsInJava(1000000);
        if (total < 0) System.exit(1);
    }
}
