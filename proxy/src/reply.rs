//! What a client is told: the 200, or a refusal that says why in three places.
//!
//! curl and Python drop the body of a refused CONNECT, so the code stands in the reason phrase and in `Proxy-Status`
//! (RFC 9209) as well.

use policy::ProfileName;
use policy::egress::{Authority, Code, Fault, RuleId};
use serde::Serialize;

/// The answer that opens a tunnel (RFC 9110 section 9.3.6: no Content-Length, no body).
pub(crate) const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";
/// A fatal `access_denied` alert (RFC 8446 section 6), so that a TLS client fails at once and says why.
pub(crate) const TLS_DENIED: &[u8] = &[21, 3, 3, 0, 2, 2, 49];
/// Longest body, in bytes.
const BODY_BYTES_MAX: usize = 1024;

/// What is known of a refused request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Denial<'a> {
    pub(crate) code: Code,
    pub(crate) authority: Option<&'a Authority>,
    pub(crate) rule: Option<&'a RuleId>,
    pub(crate) profile: &'a ProfileName,
    pub(crate) nearest: Option<&'a str>,
}

#[derive(Serialize)]
struct Body<'a> {
    error: Told<'a>,
}

#[derive(Serialize)]
struct Told<'a> {
    code: Code,
    message: String,
    host: Option<String>,
    port: Option<u16>,
    rule: Option<String>,
    r#final: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    nearest: Option<&'a str>,
    ask: String,
}

/// The whole answer, head and body.
pub(crate) fn denial(denial: Denial<'_>) -> Vec<u8> {
    let Denial { code, .. } = denial;
    let body = body(denial);
    let extra = match code.status() {
        405 => "Allow: CONNECT\r\n",
        503 => "Retry-After: 1\r\n",
        _ => "",
    };
    let (status, name, error) = (code.status(), code.status_name(), code.proxy_error());
    let mut answer = format!(
        "HTTP/1.1 {status} {name}: {code}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\
         Proxy-Status: darwin-proxy; error={error}; details=\"{code}\"\r\n{extra}\r\n",
        body.len()
    )
    .into_bytes();
    answer.extend_from_slice(&body);
    answer
}

fn body(denial: Denial<'_>) -> Vec<u8> {
    let Denial { code, authority, rule, profile, nearest } = denial;
    let is_final = code.is_final();
    let ending = if is_final { "; this is final, asking again does not help" } else { "" };
    let mut told = Told {
        code,
        message: format!("{}{ending}", code.message()),
        host: authority.map(|authority| authority.host.to_string()),
        port: authority.map(|authority| authority.port.number()),
        rule: rule.map(ToString::to_string),
        r#final: is_final,
        nearest,
        ask: ask(code, profile),
    };
    let render = |told: Told<'_>| serde_json::to_vec(&Body { error: told }).unwrap_or_default();
    let size = |told: &Told<'_>| {
        told.host.as_ref().map_or(0, String::len)
            + told.rule.as_ref().map_or(0, String::len)
            + nearest.map_or(0, str::len)
    };
    // Names are at most 253 bytes each, and everything else is under 400.
    if size(&told) + 400 > BODY_BYTES_MAX {
        told.nearest = None;
    }
    render(told)
}

/// Who can do what about it: a rule helps only where policy said no.
fn ask(code: Code, profile: &ProfileName) -> String {
    let text = match (code, code.fault()) {
        (Code::MalformedTarget, _) => {
            "write the target as HOST:PORT: a host name or an address, and a port of 1 to 65535"
        }
        (Code::MalformedHead, _) => {
            "send CONNECT HOST:PORT HTTP/1.1, then headers as NAME: VALUE, all lines ended by CRLF"
        }
        (Code::HostHeader, _) => "send one Host header, equal to the target",
        (Code::BodyNotAllowed, _) => "leave out Content-Length and Transfer-Encoding",
        (Code::Http2 | Code::Version, _) => "send the CONNECT in HTTP/1.1",
        (Code::NotHttp, _) => "send CONNECT HOST:PORT first, and TLS inside the tunnel",
        (Code::Method, _) => "use https://, which clients send as CONNECT",
        (Code::HeadTimeout | Code::ClientGone, _) => {
            "send the whole request head at once and wait for the answer"
        }
        (Code::HeadTooLarge, _) => "send fewer and shorter headers",
        (Code::NoPolicy, _) => "an operator can load a policy",
        (Code::NoProfile, _) => return format!("an operator can add the egress profile {profile}"),
        (Code::Metadata, _) => "nobody: no rule can allow it",
        (Code::Loop, _) => "name the target itself, not the proxy",
        (_, Fault::Policy) => return format!("an operator can add a rule to the egress profile {profile}"),
        (_, Fault::Caller) => "correct the request",
        (_, Fault::Quota | Fault::Peer | Fault::Host) => "ask again later",
    };
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(code: Code, nearest: Option<&str>) -> String {
        let profile = ProfileName::parse("research").unwrap();
        let authority = Authority::parse(b"E.example:443").unwrap();
        let denied = Denial { code, authority: Some(&authority), rule: None, profile: &profile, nearest };
        String::from_utf8(denial(denied)).unwrap()
    }

    #[test]
    fn a_refusal_says_its_code_in_three_places() {
        let answer = text(Code::HostNotAllowed, Some("f.example:443"));
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 403 Forbidden: host_not_allowed\r\n"));
        assert!(head.contains(
            "\r\nProxy-Status: darwin-proxy; error=http_request_denied; details=\"host_not_allowed\""
        ));
        assert!(head.contains("\r\nConnection: close\r\n"));
        assert!(head.contains(&format!("\r\nContent-Length: {}\r\n", body.len())));
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["error"]["code"], "host_not_allowed");
        assert_eq!(body["error"]["host"], "e.example");
        assert_eq!(body["error"]["final"], true);
        assert_eq!(body["error"]["nearest"], "f.example:443");
    }

    #[test]
    fn no_answer_is_longer_than_it_may_be() {
        let long = [&"a".repeat(63); 3].map(String::as_str).join(".") + "." + &"b".repeat(61);
        let profile = ProfileName::parse(&"p".repeat(64)).unwrap();
        let authority = Authority::parse(format!("{long}:65535").as_bytes()).unwrap();
        let host =
            policy::egress::HostPattern::Under(policy::egress::HostName::parse(long.as_bytes()).unwrap());
        let rule = RuleId { index: 9_999, action: policy::egress::Action::Report, host };
        let nearest = format!("*.{long}:65535");
        for &code in Code::ALL {
            let denied = Denial {
                code,
                authority: Some(&authority),
                rule: Some(&rule),
                profile: &profile,
                nearest: Some(&nearest),
            };
            assert!(body(denied).len() <= BODY_BYTES_MAX, "{code}");
        }
    }

    #[test]
    fn only_what_a_rule_could_allow_asks_for_a_rule() {
        let profile = ProfileName::parse("research").unwrap();
        assert_eq!(
            ask(Code::HostNotAllowed, &profile),
            "an operator can add a rule to the egress profile research"
        );
        for &code in Code::ALL.iter().filter(|code| code.fault() != Fault::Policy) {
            let told = ask(code, &profile);
            assert!(!told.contains("operator") && !told.is_empty(), "{code}: {told}");
        }
        assert!(text(Code::MalformedTarget, None).contains("\"ask\":\"write the target as HOST:PORT"));
    }

    #[test]
    fn every_fault_of_the_caller_says_what_to_correct() {
        let profile = ProfileName::parse("research").unwrap();
        for &code in Code::ALL.iter().filter(|code| code.fault() == Fault::Caller) {
            assert_ne!(ask(code, &profile), "correct the request", "{code}");
        }
    }

    #[test]
    fn a_refused_method_names_the_one_that_is_served() {
        assert!(text(Code::Method, None).contains("\r\nAllow: CONNECT\r\n"));
        assert!(text(Code::CallerBusy, None).contains("\r\nRetry-After: 1\r\n"));
        assert!(text(Code::DialFailed, None).contains("\"final\":false"));
    }
}
