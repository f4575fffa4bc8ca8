-- Only where it is still what was read.
-- ?1 id  ?2 fingerprint  ?3 the one that was read
UPDATE ${consumers_table}
   SET declaration_fingerprint = ?2
 WHERE id = ?1 AND declaration_fingerprint IS ?3
