//! The frame of the judge: what goes in and what may come out (J1 to J16).
