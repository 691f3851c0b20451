//! The root of a program whose work is in a module, and inlined.

mod geometry;

fn main() {
    let end = std::time::Instant::now() + std::time::Duration::from_millis(500);
    let mut value = 1;
    while std::time::Instant::now() < end {
        (0..1_000).for_each(|_| value = std::hint::black_box(geometry::turned(value)));
    }
}
