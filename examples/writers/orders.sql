-- The shop's own table. It belongs to the shop's program, not to the host.
CREATE TABLE orders (
    id       VARCHAR(40) NOT NULL PRIMARY KEY,
    customer VARCHAR(100) NOT NULL,
    cents    BIGINT NOT NULL,
    event_id CHAR(36) NOT NULL
);
