//! Burns in functions whose work is inlined code of the standard library: iterators with a closure, and intrinsics.

mod work {
    use std::hint::black_box;

    /// The closure is own code inside of the library's iterators.
    #[inline(never)]
    pub fn in_a_closure(values: &[u64]) -> u64 {
        values.iter().enumerate().map(|(at, value)| mixed(*value, at as u64)).fold(0, |sum, value| sum ^ value)
    }

    #[inline(always)]
    fn mixed(value: u64, by: u64) -> u64 {
        let value = black_box(value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(by));
        value.rotate_left(17).wrapping_mul(value | 1)
    }

    /// Nothing but the library's code.
    #[inline(never)]
    pub fn in_intrinsics(values: &mut [u64]) {
        for pair in values.chunks_exact_mut(2) {
            add_to(pair);
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn add_to(pair: &mut [u64]) {
        use std::arch::x86_64::{_mm_add_epi64, _mm_loadu_si128, _mm_set1_epi64x, _mm_storeu_si128};
        // SAFETY: the slice has two numbers, and SSE2 is part of x86_64.
        unsafe {
            let place = pair.as_mut_ptr().cast();
            let sum = _mm_add_epi64(_mm_loadu_si128(place), _mm_set1_epi64x(black_box(3)));
            _mm_storeu_si128(place, black_box(sum));
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    #[inline(always)]
    fn add_to(pair: &mut [u64]) {
        pair.iter_mut().for_each(|value| *value = black_box(value.wrapping_add(3)));
    }
}

fn main() {
    let mut values: Vec<u64> = (0..4096).collect();
    let end = std::time::Instant::now() + std::time::Duration::from_millis(1200);
    let mut sum = 0;
    while std::time::Instant::now() < end {
        for _ in 0..20 {
            sum ^= work::in_a_closure(&values);
            work::in_intrinsics(&mut values);
        }
    }
    std::hint::black_box(sum);
}
