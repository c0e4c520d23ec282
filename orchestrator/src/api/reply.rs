//! Answers of the interface: JSON, and errors that say what to do.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use serde::Serialize;
use serde_json::json;

use crate::core::reply::Refusal;

/// An answer with its whole body.
pub type Answer = Response<Full<Bytes>>;

/// One error: `{"error": {"code", "message"}}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// The HTTP status.
    pub status: StatusCode,
    /// One word.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
}

impl Wrong {
    /// An error.
    pub fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into() }
    }

    /// Its answer.
    pub fn answer(&self) -> Answer {
        answer(self.status, &json!({"error": {"code": self.code, "message": self.message}}))
    }
}

impl From<Refusal> for Wrong {
    fn from(refusal: Refusal) -> Self {
        let (status, code) = match refusal {
            Refusal::Unknown { .. } | Refusal::ModelNotOnMenu { .. } => (StatusCode::NOT_FOUND, "unknown"),
            Refusal::Conflict { .. } => (StatusCode::CONFLICT, "conflict"),
            Refusal::Reversed { .. } => (StatusCode::CONFLICT, "reversed"),
            Refusal::WrongState { .. } => (StatusCode::CONFLICT, "wrong_state"),
            Refusal::Invalid { .. } => (StatusCode::BAD_REQUEST, "invalid"),
            Refusal::NoMoney { .. } | Refusal::SpendLimit | Refusal::MoneyHeld { .. } => {
                (StatusCode::PAYMENT_REQUIRED, "no_money")
            }
        };
        Self::new(status, code, refusal.to_string())
    }
}

/// A value as JSON.
pub fn answer(status: StatusCode, value: &impl Serialize) -> Answer {
    let (status, body) = match serde_json::to_vec(value) {
        Ok(body) => (status, body),
        Err(error) => {
            (StatusCode::INTERNAL_SERVER_ERROR, format!("{{\"error\":\"{error:?}\"}}").into_bytes())
        }
    };
    let mut answer = Response::new(Full::new(Bytes::from(body)));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}
