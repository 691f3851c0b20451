// Uses CPU time in a function that V8 compiles while it runs.
const end = process.hrtime.bigint() + BigInt(Math.round(Number(process.argv[2]) * 1e9));
function burnsInScript(rounds) {
    let sum = 0;
    for (let i = 0; i < rounds; i++) sum = (sum + i * i) % 1000003;
    return sum;
}
let total = 0;
while (process.hrtime.bigint() < end) total += burnsInScript(1000000);
if (total < 0) process.exit(1);
