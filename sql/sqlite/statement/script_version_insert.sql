-- ?1 id  ?2 host  ?3 its name  ?4 version  ?5 outcome  ?6 now  ?7 seen or NULL
-- ?8 changes  ?9 error or NULL
INSERT INTO ${script_versions_table}
       (id, host_id, host_name, version, outcome, loaded_at, seen_at, changes,
        error)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
