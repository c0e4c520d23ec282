//! Signed webhooks by the Standard Webhooks specification, and the one that is taken: income (E5).
//!
//! Timestamps are held against the *host's* clock, also where the platform's own runs faster for a demonstration:
//! whoever signs lives in the host's time, and the check is against replays, not about the economy.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use hyper::{HeaderMap, StatusCode};
use policy::{AgentId, Money};
use serde::Deserialize;
use sha2::Sha256;

use super::reply::Wrong;
use crate::config::WebhookSecret;
use crate::core::input::Input;

/// How far a timestamp may be from ours, either way, in seconds.
const TOLERANCE_S: i64 = 300;
/// Longest `webhook-id`.
const ID_BYTES_MAX: usize = 256;

/// Income as announced.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Announced {
    /// Whose.
    pub agent: AgentId,
    /// Where it came from.
    pub source: String,
    /// For which project.
    pub project: String,
    /// Who paid.
    pub payer: String,
    /// How much, in whole nano-dollars; more than nothing.
    pub amount_nano: Money,
    /// `USD`, which is also what is meant where it is left out: no other has a rate.
    #[serde(default)]
    pub currency: Option<String>,
}

/// An income that is taken back, as announced.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reversed {
    /// The key of the income: the `webhook-id` that it came under, or the operator's key.
    pub income: String,
    /// Why.
    pub reason: String,
}

impl Announced {
    /// Reads a body.
    ///
    /// # Errors
    /// [`Wrong`] (400) for what is no such object. Signs, limits and who is meant are the core's to judge.
    pub fn parse(body: &[u8]) -> Result<Self, Wrong> {
        serde_json::from_slice(body).map_err(|error| {
            Wrong::new(StatusCode::BAD_REQUEST, "malformed", format!("the body is no income: {error}"))
        })
    }

    /// The input, under a key.
    ///
    /// # Errors
    /// [`Wrong`] (400) for another currency: guessing a rate would move the wrong amount.
    pub fn input(self, key: String) -> Result<Input, Wrong> {
        if let Some(currency) = self.currency.filter(|currency| currency != "USD") {
            let currency: String = currency.chars().take(16).collect();
            let message = format!("amounts are nano-dollars; currency {currency:?} has no rate");
            return Err(Wrong::new(StatusCode::BAD_REQUEST, "currency", message));
        }
        Ok(Input::Income {
            key,
            agent: self.agent,
            source: self.source,
            project: self.project,
            payer: self.payer,
            amount_nano: self.amount_nano,
        })
    }
}

impl Reversed {
    /// Reads a body.
    ///
    /// # Errors
    /// [`Wrong`] (400) for what is no such object.
    pub fn parse(body: &[u8]) -> Result<Self, Wrong> {
        serde_json::from_slice(body).map_err(|error| {
            Wrong::new(StatusCode::BAD_REQUEST, "malformed", format!("the body is no reversal: {error}"))
        })
    }

    /// The input, under a key.
    pub fn input(self, key: String, actor: String) -> Input {
        Input::ReverseIncome { key, income: self.income, reason: self.reason, actor }
    }
}

/// Checks that a body came from whoever has one of the secrets, about now. Gives the webhook's id.
///
/// # Errors
/// [`Wrong`]: 400 for headers that are missing or malformed, 401 for a wrong signature or time.
pub fn verify(
    secrets: &[WebhookSecret],
    headers: &HeaderMap,
    body: &[u8],
    now_s: i64,
) -> Result<String, Wrong> {
    let malformed = |message: &str| Wrong::new(StatusCode::BAD_REQUEST, "malformed", message);
    let refused = |message: &str| Wrong::new(StatusCode::UNAUTHORIZED, "unauthorized", message);
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let id = header("webhook-id").filter(|id| !id.is_empty() && id.len() <= ID_BYTES_MAX);
    let id = id.ok_or_else(|| malformed("webhook-id is missing, or over 256 bytes"))?;
    let timestamp = header("webhook-timestamp").ok_or_else(|| malformed("webhook-timestamp is missing"))?;
    let sent_s: i64 =
        timestamp.parse().map_err(|_error| malformed("webhook-timestamp is no whole number"))?;
    let signatures = header("webhook-signature").ok_or_else(|| malformed("webhook-signature is missing"))?;
    if secrets.is_empty() {
        return Err(refused("no webhook is accepted here: the configuration names no secret"));
    }
    if !signed(secrets, (id, timestamp), body, signatures) {
        return Err(refused("no signature of webhook-signature fits"));
    }
    // After the signature: who has no secret learns nothing of our clock.
    if sent_s.saturating_sub(now_s).saturating_abs() > TOLERANCE_S {
        return Err(refused("webhook-timestamp is more than five minutes from now"));
    }
    Ok(id.to_owned())
}

/// Whether one of the space-separated `v1,BASE64` fits one of the secrets. The comparison takes the same time
/// wherever two MACs differ.
fn signed(secrets: &[WebhookSecret], (id, timestamp): (&str, &str), body: &[u8], signatures: &str) -> bool {
    let given: Vec<Vec<u8>> = signatures
        .split(' ')
        .filter_map(|signature| STANDARD.decode(signature.strip_prefix("v1,")?).ok())
        .collect();
    secrets.iter().any(|secret| {
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.expose()) else { return false };
        for part in [id.as_bytes(), b".", timestamp.as_bytes(), b".", body] {
            mac.update(part);
        }
        given.iter().any(|signature| mac.clone().verify_slice(signature).is_ok())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    // The example of the Standard Webhooks specification.
    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
    const BODY: &[u8] = br#"{"test": 2432232314}"#;
    const AT_S: i64 = 1_614_265_330;
    const SIGNATURE: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

    fn check(change: impl Fn(&mut HeaderMap), body: &[u8], now_s: i64) -> Result<String, u16> {
        let mut headers = HeaderMap::new();
        headers.insert("webhook-id", ID.parse().unwrap());
        headers.insert("webhook-timestamp", AT_S.to_string().parse().unwrap());
        headers.insert("webhook-signature", SIGNATURE.parse().unwrap());
        change(&mut headers);
        let secrets = [WebhookSecret::parse(SECRET).unwrap()];
        verify(&secrets, &headers, body, now_s).map_err(|wrong| wrong.status.as_u16())
    }

    #[test]
    fn the_specifications_own_example_verifies() {
        assert_eq!(check(|_| {}, BODY, AT_S), Ok(ID.to_owned()));
    }

    #[test]
    fn a_second_signature_is_looked_at_while_secrets_are_replaced() {
        let both = |headers: &mut HeaderMap| {
            headers.insert("webhook-signature", format!("v1,AAAA v1a,zzz {SIGNATURE}").parse().unwrap());
        };
        assert_eq!(check(both, BODY, AT_S), Ok(ID.to_owned()));
    }

    #[test]
    fn what_was_changed_on_the_way_is_refused() {
        let id = |headers: &mut HeaderMap| drop(headers.insert("webhook-id", "msg_other".parse().unwrap()));
        let time = |headers: &mut HeaderMap| {
            drop(headers.insert("webhook-timestamp", "1614265331".parse().unwrap()));
        };
        assert_eq!(check(|_| {}, b"{}", AT_S), Err(401));
        assert_eq!(check(id, BODY, AT_S), Err(401));
        assert_eq!(check(time, BODY, AT_S), Err(401));
    }

    #[test]
    fn five_minutes_either_way_are_tolerated_and_no_second_more() {
        for near in [-300, 300] {
            assert!(check(|_| {}, BODY, AT_S + near).is_ok());
        }
        for far in [-301, 301, i64::MAX - AT_S] {
            assert_eq!(check(|_| {}, BODY, AT_S + far), Err(401));
        }
    }

    #[test]
    fn a_header_that_is_missing_is_named() {
        for name in ["webhook-id", "webhook-timestamp", "webhook-signature"] {
            assert_eq!(check(|headers| drop(headers.remove(name)), BODY, AT_S), Err(400));
        }
    }

    #[test]
    fn without_a_secret_nothing_is_accepted() {
        let mut headers = HeaderMap::new();
        headers.insert("webhook-id", ID.parse().unwrap());
        headers.insert("webhook-timestamp", AT_S.to_string().parse().unwrap());
        headers.insert("webhook-signature", SIGNATURE.parse().unwrap());
        assert!(verify(&[], &headers, BODY, AT_S).is_err());
    }

    #[test]
    fn only_whole_amounts_are_income() {
        let body = |amount: &str| {
            format!(r#"{{"agent":"a","source":"s","project":"p","payer":"q","amount_nano":{amount}}}"#)
        };
        assert!(Announced::parse(body("1").as_bytes()).is_ok());
        for amount in ["1.5", "1e3", "\"1\"", "null", "9223372036854775808"] {
            let parsed = Announced::parse(body(amount).as_bytes());
            assert_eq!(parsed.map_err(|wrong| wrong.status.as_u16()), Err(400), "{amount}");
        }
    }

    #[test]
    fn another_currency_is_refused_by_its_name() {
        let body = |currency: &str| {
            format!(
                r#"{{"agent":"a","source":"s","project":"p","payer":"q","amount_nano":1,"currency":{currency}}}"#
            )
        };
        let input = |currency| Announced::parse(body(currency).as_bytes()).unwrap().input("k".to_owned());
        for dollars in ["\"USD\"", "null"] {
            assert!(input(dollars).is_ok(), "{dollars}");
        }
        for other in ["\"EUR\"", "\"usd\"", "\"\""] {
            let wrong = input(other).unwrap_err();
            assert_eq!((wrong.status.as_u16(), wrong.code), (400, "currency"));
            assert!(wrong.message.contains(other), "{}", wrong.message);
        }
    }

    #[test]
    fn unknown_and_missing_fields_are_refused() {
        for body in [
            r#"{"agent":"a","source":"s","project":"p","payer":"q","amount_nano":1,"tip":1}"#,
            r#"{"agent":"A","source":"s","project":"p","payer":"q","amount_nano":1}"#,
            r#"{"agent":"a","source":"s","project":"p","amount_nano":1}"#,
        ] {
            assert!(Announced::parse(body.as_bytes()).is_err(), "{body}");
        }
    }
}
