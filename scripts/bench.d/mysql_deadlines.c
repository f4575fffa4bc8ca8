/*
 * mysql_deadlines URL -- fires what is due: pages of 500, the sagas' rows read
 * together, the deadlines deleted together, and the rows written back under
 * their version.
 */
#include "bare_deadlines.h"
#include "bare_mysql.h"

static struct bare_bulk update;
static char states[BARE_BATCH][64];

static int read_due(MYSQL *db)
{
    static struct bare_text sql;
    MYSQL_RES *result;
    MYSQL_ROW row;
    int got = 0;

    bare_do(db, "BEGIN");
    sql.size = 0;
    bare_puts(&sql, "SELECT position FROM CONSUMER_CHECKPOINTS" BARE_OF_CONSUMER
                    "'" SAGA_TYPE "') FOR UPDATE");
    mysql_free_result(bare_rows(db, &sql));
    sql.size = 0;
    bare_puts(&sql, "SELECT id, saga_id, payload_json FROM SAGA_DEADLINES"
                    " WHERE saga_type = '" SAGA_TYPE "' AND next_retry_at <="
                    " UTC_TIMESTAMP(6) ORDER BY next_retry_at, id LIMIT 500");
    result = bare_rows(db, &sql);
    while ((row = mysql_fetch_row(result)) != NULL) {
        memcpy(dues[got].id, row[0], 37);
        due_take(&dues[got++], bare_cell(row, mysql_fetch_lengths(result), 1),
                 row[2]);
    }
    mysql_free_result(result);
    return got;
}

/* The sagas are as many as the deadlines, and come in the order of their ids.
 */
static void take_saga(struct slice saga, MYSQL_ROW row, int got)
{
    static int at;

    for (int tried = 0; tried < got; tried++) {
        struct due *due = &dues[at++ % got];

        if (due->saga_size != saga.size ||
            memcmp(due->saga, saga.data, (size_t)saga.size) != 0)
            continue;
        memcpy(due->row, row[1], 37);
        due_row(due, strtoll(row[2], NULL, 10), row[3]);
        return;
    }
    bare_die("saga", "was not asked for");
}

static void read_sagas(MYSQL *db, int got)
{
    static struct bare_text sql;
    MYSQL_RES *result;
    MYSQL_ROW row;

    sql.size = 0;
    bare_puts(&sql, "SELECT saga_id, id, version, state_json FROM"
                    " SAGA_INSTANCES WHERE saga_type = '" SAGA_TYPE
                    "' AND saga_id IN (");
    for (int i = 0; i < got; i++) {
        bare_puts(&sql, i > 0 ? "," : "");
        bare_quote(&sql, due_saga(&dues[i]));
    }
    bare_puts(&sql, ")");
    result = bare_rows(db, &sql);
    while ((row = mysql_fetch_row(result)) != NULL)
        take_saga(bare_cell(row, mysql_fetch_lengths(result), 0), row, got);
    mysql_free_result(result);
}

static void write_all(MYSQL *db, int got)
{
    static struct bare_text sql;

    sql.size = 0;
    bare_puts(&sql, "DELETE FROM SAGA_DEADLINES WHERE id IN (");
    for (int i = 0; i < got; i++) {
        int size = due_state(&dues[i], states[i]);

        bare_puts(&sql, i > 0 ? "," : "");
        bare_quote(&sql, (struct slice){dues[i].id, 36});
        bare_bulk_text(&update, 0, states[i], (size_t)size);
        bare_bulk_int(&update, 1, dues[i].version + 1);
        bare_bulk_text(&update, 2, dues[i].row, 36);
        bare_bulk_int(&update, 3, dues[i].version);
        update.rows++;
    }
    bare_puts(&sql, ")");
    bare_run(db, &sql);
    bare_bulk_run(db, &update);
}

int main(int argc, char **argv)
{
    MYSQL *db;
    int got;

    if (argc != 2)
        bare_die("usage", "mysql_deadlines URL");
    db = bare_open(argv[1]);
    bare_prepare(db, &update,
                 "UPDATE SAGA_INSTANCES SET state_json = ?, version = ?"
                 " WHERE id = ? AND version = ?");
    do {
        got = read_due(db);
        if (got > 0) {
            read_sagas(db, got);
            write_all(db, got);
        }
        bare_do(db, "COMMIT");
    } while (got > 0);
    mysql_close(db);
    return 0;
}
