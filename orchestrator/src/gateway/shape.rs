//! Errors in the shape of the Messages protocol, so that an agent's own SDK understands them.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};
use serde_json::json;

use crate::core::reply::Refusal;

/// An answer with its whole body.
pub type Answer = Response<Full<Bytes>>;

/// Seconds after which a call that met open holds may be tried again.
const RETRY_AFTER_S: u64 = 2;

/// One error, before it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// The HTTP status.
    pub status: StatusCode,
    /// The protocol's word for it.
    pub kind: &'static str,
    /// What is wrong, for the agent to read.
    pub message: String,
    /// When to try again; only where trying again can help.
    pub retry_after_s: Option<u64>,
}

impl Wrong {
    /// A request that is not taken as it is (400).
    pub fn request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request_error", message)
    }

    /// An error of any kind.
    pub fn new(status: StatusCode, kind: &'static str, message: impl Into<String>) -> Self {
        Self { status, kind, message: message.into(), retry_after_s: None }
    }

    /// A route that is not there (404).
    pub fn no_route(what: &str) -> Self {
        let message =
            format!("{what} is not served here: POST /v1/messages (not streamed) and POST /mcp are");
        Self::new(StatusCode::NOT_FOUND, "not_found_error", message)
    }

    /// A failure of ours (500).
    pub fn ours(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "api_error", message)
    }

    /// The answer.
    pub fn answer(&self) -> Answer {
        let body = json!({"type": "error", "error": {"type": self.kind, "message": self.message}});
        let mut answer = json_answer(self.status, &body);
        if let Some(seconds) = self.retry_after_s {
            answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        answer
    }
}

/// What the core said no to (G4): only money that may come back is worth another try.
impl From<Refusal> for Wrong {
    fn from(refusal: Refusal) -> Self {
        let message = refusal.to_string();
        match refusal {
            Refusal::NoMoney { .. } | Refusal::SpendLimit => {
                Self::new(StatusCode::PAYMENT_REQUIRED, "billing_error", message)
            }
            Refusal::MoneyHeld { .. } => Self {
                retry_after_s: Some(RETRY_AFTER_S),
                ..Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", message)
            },
            Refusal::WrongState { .. } => Self::new(StatusCode::FORBIDDEN, "permission_error", message),
            Refusal::ModelNotOnMenu { .. } | Refusal::Unknown { .. } => {
                Self::new(StatusCode::NOT_FOUND, "not_found_error", message)
            }
            Refusal::Conflict { .. } | Refusal::Reversed { .. } => {
                Self::new(StatusCode::CONFLICT, "conflict_error", message)
            }
            Refusal::Invalid { .. } => Self::request(message),
        }
    }
}

/// A JSON body under a status.
pub fn json_answer(status: StatusCode, body: &serde_json::Value) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(body.to_string())));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

#[cfg(test)]
mod tests {
    use super::*;
    use policy::Money;

    #[test]
    fn an_empty_purse_is_no_reason_to_try_again() {
        let wrong = Wrong::from(Refusal::NoMoney { available_nano: Money::ZERO });
        assert_eq!((wrong.status.as_u16(), wrong.retry_after_s), (402, None));
        assert!(!wrong.answer().headers().contains_key(RETRY_AFTER));
    }

    #[test]
    fn held_money_is_a_reason_to_try_again() {
        let wrong = Wrong::from(Refusal::MoneyHeld { held_nano: Money::DOLLAR });
        assert_eq!(wrong.status.as_u16(), 429);
        assert!(wrong.answer().headers().contains_key(RETRY_AFTER));
    }

    #[test]
    fn the_dead_are_forbidden() {
        assert_eq!(Wrong::from(Refusal::WrongState { state: "dead".to_owned() }).status.as_u16(), 403);
    }
}
