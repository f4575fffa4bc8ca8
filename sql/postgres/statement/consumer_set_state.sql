-- ?1 id  ?2 state  ?3 halt reason  ?4 now
UPDATE ${consumers_table}
   SET state = ?2::text, halt_reason = ?3::text, state_since = ?4::timestamptz
 WHERE id = ?1::text::uuid
