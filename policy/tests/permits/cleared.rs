use policy::egress::Cleared;

fn main() {
    let _ = Cleared { would_deny: None };
}
