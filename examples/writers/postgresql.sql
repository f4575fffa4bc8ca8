-- psql "$DATABASE_URL" -v ON_ERROR_STOP=1 -f postgresql.sql
BEGIN;

INSERT INTO orders (id, customer, cents, event_id)
VALUES ('P-1', 'Ada', 450, '01990000-0000-7000-8000-000000000001');

SELECT * FROM moontide_append(NULL::event_store, 'shop.order', 'P-1', 'none',
    ARRAY['order.Placed', 'order.Confirmed'],
    ARRAY['{"customer": "Ada", "cents": 450}', '{}']::json[],
    metadata => ARRAY['{"user": "ada"}', NULL]::json[],
    ids => ARRAY['01990000-0000-7000-8000-000000000001', NULL]::uuid[]);

COMMIT;
