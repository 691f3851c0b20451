//! Durations as people write them.

use std::time::Duration;

/// Parses `10s`, `2m`, `500ms`, `1m30s`; a bare number is seconds.
pub(super) fn parse_duration(text: &str) -> Result<Duration, String> {
    let duration = match text.parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            humantime::parse_duration(text).map_err(|_| "not a time; write 10s, 2m or 500ms".to_string())?
        }
    };
    if duration.is_zero() { Err("must be longer than nothing".into()) } else { Ok(duration) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(parse_duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_duration("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(parse_duration("3"), Ok(Duration::from_secs(3)));
        assert!(parse_duration("0").is_err() && parse_duration("ten").is_err());
    }
}
