//! The demo's name server: it knows the two sites and nothing else, and notes every question.

use std::net::Ipv4Addr;

use hickory_proto::op::{Message, MessageType, OpCode, ResponseCode};
use hickory_proto::rr::rdata::A;
use hickory_proto::rr::{Name, RData, Record, RecordType};
use tokio::net::UdpSocket;

use super::witness::{Sighting, Witness};

/// One name and its address.
#[derive(Debug, Clone, Copy)]
pub struct Zone<'a> {
    /// The name, without a last dot.
    pub name: &'a str,
    /// Where it is.
    pub address: Ipv4Addr,
}

/// Answers one question; `None` for what is no question.
pub fn answer(packet: &[u8], zones: &[Zone<'_>], witness: &Witness) -> Option<Vec<u8>> {
    let asked = Message::from_vec(packet).ok()?;
    if asked.metadata.message_type != MessageType::Query {
        return None;
    }
    let query = asked.queries.first()?.clone();
    let name = plain(query.name());
    witness.saw(&Sighting::Query { name: name.clone(), kind: query.query_type().to_string() });
    let mut reply = Message::response(asked.metadata.id, OpCode::Query);
    reply.metadata.recursion_desired = asked.metadata.recursion_desired;
    reply.metadata.recursion_available = true;
    match zones.iter().find(|zone| zone.name == name) {
        Some(zone) if query.query_type() == RecordType::A => {
            reply.add_answer(Record::from_rdata(query.name().clone(), 60, RData::A(A(zone.address))));
        }
        Some(_other_type) => {}
        None => reply.metadata.response_code = ResponseCode::NXDomain,
    }
    reply.add_query(query);
    reply.to_vec().ok()
}

fn plain(name: &Name) -> String {
    name.to_lowercase().to_ascii().trim_end_matches('.').to_owned()
}

/// Serves for ever.
///
/// # Errors
/// When the socket fails.
pub async fn serve(socket: UdpSocket, zones: &[Zone<'_>], witness: &Witness) -> std::io::Result<()> {
    let mut packet = vec![0; 4096];
    loop {
        let (len, from) = socket.recv_from(&mut packet).await?;
        let reply = packet.get(..len).and_then(|asked| answer(asked, zones, witness));
        match reply {
            Some(reply) => {
                socket.send_to(&reply, from).await?;
            }
            None => witness.saw(&Sighting::Stray { what: format!("{len} bytes on the name server's port") }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::witness;
    use hickory_proto::op::Query;

    const ZONES: [Zone<'static>; 1] =
        [Zone { name: "market.example.test", address: Ipv4Addr::new(10, 231, 77, 2) }];

    fn ask(name: &str, kind: RecordType, witness: &Witness) -> Message {
        let mut message = Message::query();
        message.add_query(Query::query(Name::from_ascii(name).unwrap(), kind));
        Message::from_vec(&answer(&message.to_vec().unwrap(), &ZONES, witness).unwrap()).unwrap()
    }

    #[test]
    fn it_knows_its_own_names_and_notes_every_question() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("seen.jsonl");
        let witness = Witness::open(&path).unwrap();
        let known = ask("Market.example.test.", RecordType::A, &witness);
        assert_eq!(known.answers.len(), 1);
        assert_eq!(ask("market.example.test.", RecordType::AAAA, &witness).answers.len(), 0);
        let unknown = ask("evil.example.test.", RecordType::A, &witness);
        assert_eq!(unknown.metadata.response_code, ResponseCode::NXDomain);
        let seen = witness::read(&path).unwrap();
        assert_eq!(seen.len(), 3);
        assert_eq!(
            seen.last(),
            Some(&Sighting::Query { name: "evil.example.test".into(), kind: "A".into() })
        );
    }

    #[test]
    fn noise_gets_no_answer() {
        let folder = tempfile::tempdir().unwrap();
        let witness = Witness::open(&folder.path().join("seen.jsonl")).unwrap();
        assert_eq!(answer(b"hello", &ZONES, &witness), None);
        assert_eq!(answer(&[], &ZONES, &witness), None);
    }
}
