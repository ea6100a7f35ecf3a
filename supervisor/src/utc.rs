//! Times as they are written: RFC 3339 in UTC, to the microsecond.

use crate::text::push_padded;

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;

/// 0000-01-01T00:00:00Z in microseconds since the epoch: RFC 3339 has years of four digits.
const FIRST: i64 = -719_528 * DAY;

/// The last microsecond of the year 9999.
const LAST: i64 = 2_932_897 * DAY - 1;

/// Writes a time, given in microseconds since 1970-01-01T00:00:00Z. One outside the years 0 to 9999 is
/// written as the nearest of them.
pub(crate) fn push_time(text: &mut String, micros: i64) {
    let micros = micros.clamp(FIRST, LAST);
    push_date(text, micros.div_euclid(DAY));
    text.push('T');
    push_time_of_day(text, micros.rem_euclid(DAY));
    text.push('Z');
}

fn push_time_of_day(text: &mut String, micros: i64) {
    let seconds = micros / SECOND;
    push_padded(text, seconds / 3600, 2);
    text.push(':');
    push_padded(text, seconds / 60 % 60, 2);
    text.push(':');
    push_padded(text, seconds % 60, 2);
    text.push('.');
    push_padded(text, micros % SECOND, 6);
}

fn push_date(text: &mut String, days: i64) {
    let (year, month, day) = date(days);
    push_padded(text, year, 4);
    text.push('-');
    push_padded(text, month, 2);
    text.push('-');
    push_padded(text, day, 2);
}

/// Year, month and day of a day counted from the epoch. Years are counted from March, so that the leap
/// day is a year's last and months before it have lengths that follow one rule; 400 years always have
/// 146,097 days.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 {
        from_march + 3
    } else {
        from_march - 9
    };
    (era * 400 + year + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::{DAY, date, push_time};

    #[rstest]
    #[case(0, "1970-01-01T00:00:00.000000Z")]
    #[case(-1, "1969-12-31T23:59:59.999999Z")]
    #[case(951_782_400_000_000, "2000-02-29T00:00:00.000000Z")]
    #[case(1_709_251_199_999_999, "2024-02-29T23:59:59.999999Z")]
    #[case(1_709_251_200_000_000, "2024-03-01T00:00:00.000000Z")]
    #[case(1_796_065_200_123_456, "2026-11-30T19:00:00.123456Z")]
    #[case(2_147_483_648_000_000, "2038-01-19T03:14:08.000000Z")]
    #[case(4_107_542_400_000_000, "2100-03-01T00:00:00.000000Z")]
    #[case(-62_135_596_800_000_000, "0001-01-01T00:00:00.000000Z")]
    #[case(i64::MIN, "0000-01-01T00:00:00.000000Z")]
    #[case(i64::MAX, "9999-12-31T23:59:59.999999Z")]
    fn known_times(#[case] micros: i64, #[case] expected: &str) {
        let mut text = String::new();
        push_time(&mut text, micros);
        assert_eq!(text, expected);
    }

    #[test]
    fn every_day_of_ten_thousand_years_follows_the_one_before() {
        let mut before = date(-719_528);
        assert_eq!(before, (0, 1, 1));
        for day in -719_527..=super::LAST / DAY {
            let now = date(day);
            assert!(now > before, "{before:?} {now:?}");
            assert!(
                now.2 == before.2 + 1 || now.2 == 1 && before.2 >= 28,
                "{before:?} {now:?}"
            );
            before = now;
        }
        assert_eq!(before, (9999, 12, 31));
    }
}
