//! What the provider says that a call used.
//!
//! `input_tokens` are the uncached ones alone; cache writes come as a total and, from newer models, split by how
//! long they live. The total and its parts are the same tokens and are never added up.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::core::input::Usage;

/// Reads the `usage` of a Messages answer. `None` where a count that must be there is missing or is no count.
pub fn read(answer: &Value) -> Option<Usage> {
    let usage = answer.get("usage")?.as_object()?;
    let written = count(usage, "cache_creation_input_tokens")?;
    let (short, long) = match usage.get("cache_creation").filter(|split| !split.is_null()) {
        None => (written, 0),
        Some(split) => {
            let split = split.as_object()?;
            let long = count(split, "ephemeral_1h_input_tokens")?;
            let short = count(split, "ephemeral_5m_input_tokens")?;
            // Tokens of the total that no part names are writes all the same.
            (short.max(written.saturating_sub(long)), long)
        }
    };
    usage.get("input_tokens")?;
    usage.get("output_tokens")?;
    Some(Usage {
        input_tokens: count(usage, "input_tokens")?,
        cache_write_5m_tokens: short,
        cache_write_1h_tokens: long,
        cache_read_tokens: count(usage, "cache_read_input_tokens")?,
        output_tokens: count(usage, "output_tokens")?,
        other: others(usage),
    })
}

/// A count; left out or null is none. Anything else (negative, a fraction, text) is `None`.
fn count(object: &Map<String, Value>, key: &str) -> Option<u64> {
    match object.get(key) {
        None | Some(Value::Null) => Some(0),
        Some(value) => value.as_u64(),
    }
}

const READ: [&str; 5] = [
    "input_tokens",
    "cache_creation_input_tokens",
    "cache_creation",
    "cache_read_input_tokens",
    "output_tokens",
];

fn others(usage: &Map<String, Value>) -> BTreeMap<String, String> {
    let unread = usage.iter().filter(|(key, value)| !READ.contains(&key.as_str()) && !value.is_null());
    unread.map(|(key, value)| (key.clone(), value.to_string())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn counts(usage: &Value) -> Option<[u64; 5]> {
        let read = read(&json!({ "usage": usage }))?;
        Some([
            read.input_tokens,
            read.cache_write_5m_tokens,
            read.cache_write_1h_tokens,
            read.cache_read_tokens,
            read.output_tokens,
        ])
    }

    #[test]
    fn cache_tokens_are_counted_once() {
        let split = json!({"ephemeral_5m_input_tokens": 12_000, "ephemeral_1h_input_tokens": 304});
        let usage = json!({
            "input_tokens": 3, "cache_creation_input_tokens": 12_304, "cache_creation": split, "output_tokens": 550,
        });
        assert_eq!(counts(&usage), Some([3, 12_000, 304, 0, 550]));
        let unsplit = json!({"input_tokens": 3, "cache_creation_input_tokens": 12_304, "output_tokens": 550});
        assert_eq!(counts(&unsplit), Some([3, 12_304, 0, 0, 550]));
    }

    #[test]
    fn cache_reads_are_not_ordinary_input() {
        let usage = json!({"input_tokens": 5, "cache_read_input_tokens": 9_000, "output_tokens": 1});
        assert_eq!(counts(&usage), Some([5, 0, 0, 9_000, 1]));
    }

    #[test]
    fn nulls_are_none_and_unknown_fields_are_kept() {
        let answer = json!({"usage": {
            "input_tokens": 1, "cache_creation_input_tokens": null, "cache_creation": null, "output_tokens": 2,
            "service_tier": "standard", "speed": null,
        }});
        let usage = read(&answer).unwrap();
        assert_eq!(usage.cache_write_5m_tokens, 0);
        assert_eq!(usage.other, BTreeMap::from([("service_tier".to_owned(), "\"standard\"".to_owned())]));
    }

    #[test]
    fn what_is_no_count_is_no_usage() {
        for usage in [
            json!({"input_tokens": -1, "output_tokens": 1}),
            json!({"input_tokens": 1.5, "output_tokens": 1}),
            json!({"input_tokens": "1", "output_tokens": 1}),
            json!({"input_tokens": 1}),
            json!({"output_tokens": 1}),
            json!(null),
        ] {
            assert_eq!(counts(&usage), None, "{usage}");
        }
    }
}
