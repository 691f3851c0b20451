//! A module of `modules.rs`.

#[inline(always)]
pub fn turned(mut value: u64) -> u64 {
    for turn in 0..200 {
        value = value.rotate_left(7).wrapping_mul(6_364_136_223_846_793_005) ^ turn;
    }
    value
}
