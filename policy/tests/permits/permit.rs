use policy::egress::{Authority, Grounds, Permit};

fn forge(authority: Authority) -> Permit {
    Permit { authority, grounds: Grounds::PublicMode }
}

fn main() {}
