/* The SQLite driver and its file: opening, full disks, lost files. */
#include "db_support.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

static enum status open_url(struct fixture *f, const char *url, bool create,
                            struct db **db)
{
    struct db_options options = {
        .url = url, .busy_timeout = 20000, .create = create};

    return db_open(&options, db, &f->diag);
}

static void expect_open(struct fixture *f, const char *url, bool create,
                        enum status expected, const char *says)
{
    struct db *db;

    assert_int_equal(open_url(f, url, create, &db), expected);
    assert_null(db);
    assert_says(f, says);
}

static void write_file(const char *path, const char *content)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(content, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void a_url_of_another_form_is_a_configuration_error(void **state)
{
    struct fixture *f = *state;

    expect_open(f, "postgresql://u:secret@h/db?port=x&nonsense=secret", true,
                STATUS_CONFIG, "nonsense");
    assert_null(strstr(f->diag.message, "secret"));
    expect_open(f, "mysql://u:secret@h", true, STATUS_CONFIG,
                "names no database");
    assert_null(strstr(f->diag.message, "secret"));
    expect_open(f, "orders.db", true, STATUS_CONFIG, "sqlite:PATH");
    expect_open(f, "sqlite:", true, STATUS_CONFIG, "sqlite:PATH");
    expect_open(f, NULL, true, STATUS_CONFIG, "sqlite:PATH");
}

static void what_cannot_be_reached_is_unavailable(void **state)
{
    struct fixture *f = *state;
    char url[160];

    snprintf(url, sizeof(url), "sqlite:%s/none/x.db", f->folder);
    expect_open(f, url, true, STATUS_UNAVAILABLE, "/none");
    snprintf(url, sizeof(url), "sqlite:%s/x.db", f->folder);
    expect_open(f, url, false, STATUS_UNAVAILABLE, "/x.db");
    assert_int_not_equal(access(url + 7, F_OK), 0);
    snprintf(url, sizeof(url), "sqlite:%s", f->folder);
    expect_open(f, url, true, STATUS_UNAVAILABLE, "not a file");
}

static void a_file_of_something_else_is_refused_when_opened(void **state)
{
    struct fixture *f = *state;
    char other[128];
    char url[160];

    snprintf(other, sizeof(other), "%s.other", f->path);
    snprintf(url, sizeof(url), "sqlite:%s", other);
    write_file(other, "This is a shopping list, and nothing else than that. "
                      "Bread, butter, a pound of apples, ten eggs, salt.");
    expect_open(f, url, true, STATUS_UNAVAILABLE, "not a SQLite database");
    assert_says(f, other);
}

static void a_relative_path_is_never_taken_for_a_uri(void **state)
{
    struct fixture *f = *state;
    char before[256];
    struct db *db;

    assert_non_null(getcwd(before, sizeof(before)));
    assert_int_equal(chdir(f->folder), 0);
    ok(f, open_url(f, "sqlite:file:x?mode=memory", true, &db));
    assert_int_equal(access("file:x?mode=memory", F_OK), 0);
    assert_int_equal(chdir(before), 0);
    ok(f, db_reopen(db, &f->diag)); /* its path does not depend on the folder */
    db_close(db);
    assert_int_equal(chdir(f->folder), 0);
    assert_int_equal(unlink("file:x?mode=memory"), 0);
    assert_int_equal(chdir(before), 0);
}

static void the_session_has_the_hosts_settings(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(number(f, "PRAGMA synchronous"), 2);
    assert_int_equal(number(f, "PRAGMA foreign_keys"), 1);
    assert_int_equal(number(f, "PRAGMA temp_store"), 2);
    assert_int_equal(number(f, "PRAGMA wal_autocheckpoint"), 16000);
    assert_int_equal(number(f, "PRAGMA journal_size_limit"), 64 << 20);
    assert_int_equal(number(f, "SELECT journal_mode = 'wal' FROM"
                               " pragma_journal_mode"),
                     1);
    assert_string_equal(db_dialect(f->db), "sqlite");
    assert_string_equal(db_url_shown(f->db), f->url);
}

static void a_read_only_connection_refuses_to_write(void **state)
{
    struct fixture *f = *state;
    struct db_options options = {.url = f->url, .read_only = true};
    struct db *db;

    run(f, "CREATE TABLE t (a INTEGER) STRICT");
    ok(f, db_open(&options, &db, &f->diag));
    assert_int_equal(number_from(f, db, "SELECT count(*) FROM t"), 0);
    assert_int_equal(try_run(f, db, "INSERT INTO t VALUES (1)"),
                     STATUS_PERMANENT);
    assert_says(f, "for reading only");
    db_close(db);
}

/* Runs in a child, without the rights of root; 0 when all was as it should. */
static int open_as_nobody(struct fixture *f)
{
    struct db *db;

    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
        return 10;
    if (open_url(f, f->url, true, &db) != STATUS_UNAVAILABLE)
        return 11;
    if (strstr(f->diag.message, "not writable") == NULL)
        return 12;
    return strstr(f->diag.message, f->path) != NULL ? 0 : 13;
}

static int in_child(struct fixture *f, int (*what)(struct fixture *f))
{
    int result = 0;
    pid_t child;

    fflush(NULL);
    child = fork();
    if (child == 0)
        _exit(what(f));
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &result, 0), child);
    return WIFEXITED(result) ? WEXITSTATUS(result) : 99;
}

static void
a_file_without_the_right_to_write_is_refused_when_opened(void **state)
{
    struct fixture *f = *state;

    run(f, "CREATE TABLE t (a INTEGER) STRICT");
    db_close(f->db);
    f->db = NULL;
    assert_int_equal(chmod(f->path, 0444), 0);
    assert_int_equal(chmod(f->folder, 0755), 0);
    assert_int_equal(in_child(f, open_as_nobody), 0);
    assert_int_equal(chmod(f->path, 0644), 0);
    f->db = fixture_connect(f);
}

static const char fill[] =
    "INSERT INTO t WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1"
    " FROM n LIMIT 2000) SELECT hex(randomblob(500)) FROM n";

static void a_full_database_is_an_error_and_nothing_is_kept(void **state)
{
    struct fixture *f = *state;

    run(f, "CREATE TABLE t (a TEXT) STRICT");
    (void)number(f, "PRAGMA max_page_count = 50");
    begin(f);
    run(f, "INSERT INTO t VALUES ('first')");
    assert_int_equal(try_run(f, f->db, fill), STATUS_UNAVAILABLE);
    assert_says(f, "the disk is full");
    assert_says(f, f->path);
    assert_int_equal(db_commit(f->db, NULL, &f->diag), STATUS_UNAVAILABLE);
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 0);
    (void)number(f, "PRAGMA max_page_count = 100000");
    run(f, fill); /* with room again the connection goes on */
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 2000);
}

/* The log cannot grow: every write behind the limit fails. In a child, since
 * the limit is the process's. */
static int write_beyond_the_limit(struct fixture *f)
{
    struct rlimit limit = {200000, 200000};
    struct db *db;
    int64_t affected;
    struct db_sql sql = sql_of(fill);
    enum status status;

    if (open_url(f, f->url, true, &db) != STATUS_OK)
        return 10;
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
        return 11;
    if (db_begin(db, &f->diag) != STATUS_OK)
        return 12;
    status = db_execute(db, &sql, NULL, 0, &affected, &f->diag);
    if (status == STATUS_OK)
        status = db_commit(db, NULL, &f->diag);
    if (status != STATUS_UNAVAILABLE)
        return 13;
    if (strstr(f->diag.message, f->path) == NULL)
        return 14;
    db_rollback(db);
    return number_from(f, db, "SELECT count(*) FROM t") == 0 ? 0 : 15;
}

static void a_write_that_fails_never_looks_like_a_commit(void **state)
{
    struct fixture *f = *state;

    run(f, "CREATE TABLE t (a TEXT) STRICT");
    db_close(f->db);
    f->db = NULL;
    assert_int_equal(in_child(f, write_beyond_the_limit), 0);
    f->db = fixture_connect(f);
    assert_int_equal(number(f, "SELECT count(*) FROM t"), 0);
}

static void a_deleted_file_is_an_error_at_begin(void **state)
{
    struct fixture *f = *state;

    run(f, "CREATE TABLE t (a INTEGER) STRICT");
    assert_int_equal(unlink(f->path), 0);
    assert_int_equal(db_begin(f->db, &f->diag), STATUS_UNAVAILABLE);
    assert_says(f, "moved, deleted or replaced");
    assert_says(f, f->path);
}

static void nothing_is_read_from_or_written_to_a_deleted_file(void **state)
{
    struct fixture *f = *state;
    struct db_sql select = sql_of("SELECT count(*) FROM t");
    struct db_rows *rows;

    run(f, "CREATE TABLE t (a INTEGER) STRICT");
    assert_int_equal(unlink(f->path), 0);
    assert_int_equal(db_begin_read(f->db, &f->diag), STATUS_UNAVAILABLE);
    assert_int_equal(try_run(f, f->db, "INSERT INTO t VALUES (1)"),
                     STATUS_UNAVAILABLE);
    assert_int_equal(db_query(f->db, &select, NULL, 0, &rows, &f->diag),
                     STATUS_UNAVAILABLE);
    assert_int_equal(
        db_script(f->db, text_of("CREATE TABLE u (a)"), DB_HOST, &f->diag),
        STATUS_UNAVAILABLE);
    assert_says(f, "moved, deleted or replaced");
}

static void a_file_locked_by_another_program_is_busy(void **state)
{
    struct fixture *f = *state;
    sqlite3 *raw;

    db_close(f->db);
    f->db = NULL;
    raw = raw_open(f);
    raw_run(raw, "PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE");
    expect_open(f, f->url, true, STATUS_BUSY, "locked by another program");
    assert_int_equal(f->diag.status, STATUS_BUSY);
    sqlite3_close(raw);
    f->db = fixture_connect(f); /* and it is a log's file again */
    assert_int_equal(number(f, "SELECT journal_mode = 'wal' FROM"
                               " pragma_journal_mode"),
                     1);
}

static void a_file_locked_when_it_is_opened_anew_is_unavailable(void **state)
{
    struct fixture *f = *state;
    char away[128];
    sqlite3 *raw;

    (void)snprintf(away, sizeof(away), "%s-away", f->path);
    assert_int_equal(rename(f->path, away), 0);
    assert_int_equal(db_reopen(f->db, &f->diag), STATUS_UNAVAILABLE);
    assert_int_equal(rename(away, f->path), 0);
    raw = raw_open(f);
    raw_run(raw, "PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE");
    assert_int_equal(db_reopen(f->db, &f->diag), STATUS_UNAVAILABLE);
    assert_int_equal(f->diag.status, STATUS_UNAVAILABLE);
    assert_says(f, "locked by another program");
    sqlite3_close(raw);
    ok(f, db_reopen(f->db, &f->diag));
}

static void a_file_deleted_inside_a_transaction_fails_the_commit(void **state)
{
    struct fixture *f = *state;

    run(f, "CREATE TABLE t (a INTEGER) STRICT");
    begin(f);
    run(f, "INSERT INTO t VALUES (1)");
    assert_int_equal(unlink(f->path), 0);
    assert_int_equal(db_commit(f->db, NULL, &f->diag), STATUS_UNAVAILABLE);
    assert_says(f, "moved, deleted or replaced");
}

static void a_file_that_was_replaced_fails_the_commit(void **state)
{
    struct fixture *f = *state;
    char other[128];

    run(f, "CREATE TABLE t (a INTEGER) STRICT");
    begin(f);
    run(f, "INSERT INTO t VALUES (1)");
    snprintf(other, sizeof(other), "%s.other", f->path);
    write_file(other, "");
    assert_int_equal(rename(other, f->path), 0);
    assert_int_equal(db_commit(f->db, NULL, &f->diag), STATUS_UNAVAILABLE);
}

static void a_log_that_was_deleted_fails_the_commit(void **state)
{
    struct fixture *f = *state;
    char log[128];

    run(f, "CREATE TABLE t (a INTEGER) STRICT");
    begin(f);
    run(f, "INSERT INTO t VALUES (1)");
    snprintf(log, sizeof(log), "%s-wal", f->path);
    assert_int_equal(unlink(log), 0);
    assert_int_equal(db_commit(f->db, NULL, &f->diag), STATUS_UNAVAILABLE);
    assert_says(f, "-wal");
}

static void a_log_that_was_replaced_fails_the_commit(void **state)
{
    struct fixture *f = *state;
    char log[128];
    char other[128];

    run(f, "CREATE TABLE t (a INTEGER) STRICT");
    begin(f);
    run(f, "INSERT INTO t VALUES (1)");
    snprintf(log, sizeof(log), "%s-wal", f->path);
    snprintf(other, sizeof(other), "%s.other", f->path);
    write_file(other, "");
    assert_int_equal(rename(other, log), 0);
    assert_int_equal(db_commit(f->db, NULL, &f->diag), STATUS_UNAVAILABLE);
    assert_says(f, "-wal");
}

static void a_damaged_page_is_named_with_the_file(void **state)
{
    struct fixture *f = *state;
    static const char rubbish[4096] = "rubbish";
    int file;

    run(f, "CREATE TABLE t (a TEXT) STRICT");
    run(f, fill);
    db_close(f->db);
    f->db = NULL;
    file = open(f->path, O_WRONLY | O_CLOEXEC);
    assert_true(file >= 0);
    assert_int_equal(pwrite(file, rubbish, sizeof(rubbish), 4096),
                     sizeof(rubbish));
    assert_int_equal(close(file), 0);
    f->db = fixture_connect(f);
    assert_int_equal(try_run(f, f->db, "SELECT count(*) FROM t"),
                     STATUS_UNAVAILABLE);
    assert_says(f, "damaged");
    assert_says(f, f->path);
}

static void the_log_is_cut_after_a_reader_held_it(void **state)
{
    struct fixture *f = *state;
    char log[128];
    struct stat info;

    snprintf(log, sizeof(log), "%s-wal", f->path);
    run(f, "CREATE TABLE t (a TEXT) STRICT");
    (void)number(f, "PRAGMA journal_size_limit = 100000");
    (void)number(f, "PRAGMA wal_autocheckpoint = 10");
    {
        struct db *reader = fixture_connect(f);

        ok(f, db_begin_read(reader, &f->diag));
        run(f, fill);
        assert_int_equal(stat(log, &info), 0);
        assert_true(info.st_size > 1000000);
        db_close(reader);
    }
    run(f, "INSERT INTO t VALUES ('x')"); /* copies everything back */
    run(f, "INSERT INTO t VALUES ('y')"); /* begins the log anew */
    assert_int_equal(stat(log, &info), 0);
    assert_in_range(info.st_size, 0, 100000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_database(a_url_of_another_form_is_a_configuration_error),
        with_database(what_cannot_be_reached_is_unavailable),
        with_database(a_file_of_something_else_is_refused_when_opened),
        with_database(a_relative_path_is_never_taken_for_a_uri),
        with_database(the_session_has_the_hosts_settings),
        with_database(a_read_only_connection_refuses_to_write),
        with_database(a_file_without_the_right_to_write_is_refused_when_opened),
        with_database(a_full_database_is_an_error_and_nothing_is_kept),
        with_database(a_write_that_fails_never_looks_like_a_commit),
        with_database(a_deleted_file_is_an_error_at_begin),
        with_database(nothing_is_read_from_or_written_to_a_deleted_file),
        with_database(a_file_locked_by_another_program_is_busy),
        with_database(a_file_locked_when_it_is_opened_anew_is_unavailable),
        with_database(a_file_deleted_inside_a_transaction_fails_the_commit),
        with_database(a_file_that_was_replaced_fails_the_commit),
        with_database(a_log_that_was_deleted_fails_the_commit),
        with_database(a_log_that_was_replaced_fails_the_commit),
        with_database(a_damaged_page_is_named_with_the_file),
        with_database(the_log_is_cut_after_a_reader_held_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
