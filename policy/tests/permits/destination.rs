use policy::egress::Destination;

fn main() {
    let _ = Destination("127.0.0.1:443".parse().unwrap());
}
