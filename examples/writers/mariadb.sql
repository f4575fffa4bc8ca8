-- mariadb bank < mariadb.sql
START TRANSACTION;

INSERT INTO orders (id, customer, cents, event_id)
VALUES ('M-1', 'Ada', 450, '01990000-0000-7000-8000-000000000002');

CALL moontide_append('shop.order', 'M-1', 'none', '[
  {"type": "order.Placed", "payload": {"customer": "Ada", "cents": 450},
   "metadata": {"user": "ada"}, "id": "01990000-0000-7000-8000-000000000002"},
  {"type": "order.Confirmed", "payload": {}}
]');

COMMIT;
