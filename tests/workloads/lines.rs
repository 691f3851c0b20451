//! Burns about half a second in a function of a module.

mod outer {
    use std::hint::black_box;
    use std::time::{Duration, Instant};

    #[inline(never)]
    pub fn burns_with_lines() {
        let end = Instant::now() + Duration::from_millis(500);
        let mut value = 1_u64;
        while Instant::now() < end {
            for _ in 0..10_000 {
                value = black_box(value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
            }
        }
    }
}

fn main() {
    outer::burns_with_lines();
}
