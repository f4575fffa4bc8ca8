/* Tables of a shape, and reading a table's shape back. */
#include "db_support.h"

#include "db/shape.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct db_shape_column columns[] = {
    {.name = "id", .kind = DB_KIND_KEY, .primary = true},
    {.name = "state", .kind = DB_KIND_DOCUMENT, .not_null = true},
    {.name = "iban", .kind = DB_KIND_TEXT, .unique = true},
    {.name = "owner", .kind = DB_KIND_UUID, .indexed = true},
    {.name = "amount", .kind = DB_KIND_DECIMAL, .precision = 18, .scale = 2},
    {.name = "open", .kind = DB_KIND_BOOLEAN},
    {.name = "rate", .kind = DB_KIND_DOUBLE},
    {.name = "photo", .kind = DB_KIND_BYTES},
    {.name = "since", .kind = DB_KIND_TIMESTAMP},
    {.name = "count", .kind = DB_KIND_INTEGER},
};
static const struct db_shape shape = {"account", columns, COUNT(columns)};

struct described {
    struct arena arena;
    struct db_shape shape;
    bool exists;
};

static void describe(struct fixture *f, struct described *d, const char *name)
{
    *d = (struct described){.arena = ARENA_EMPTY};
    ok(f, db_describe_table(f->db, name, &d->arena, &d->shape, &d->exists,
                            &f->diag));
}

static void a_created_table_comes_back_as_its_shape(void **state)
{
    struct fixture *f = *state;
    struct described d;

    ok(f, db_create_table(f->db, &shape, &f->diag));
    describe(f, &d, "account");
    assert_true(d.exists);
    assert_int_equal(d.shape.ncolumns, COUNT(columns));
    for (size_t i = 0; i < COUNT(columns); i++) {
        const struct db_shape_column *got = &d.shape.columns[i];

        assert_string_equal(got->name, columns[i].name);
        assert_int_equal(got->primary, columns[i].primary);
        assert_int_equal(got->not_null,
                         columns[i].not_null || columns[i].primary);
        assert_int_equal(got->unique, columns[i].unique);
        assert_int_equal(got->indexed, columns[i].indexed || columns[i].unique);
        assert_null(db_column_fits(f->db, &columns[i], got));
    }
    arena_free(&d.arena);
}

static void a_created_table_is_strict_and_compares_byte_by_byte(void **state)
{
    struct fixture *f = *state;

    ok(f, db_create_table(f->db, &shape, &f->diag));
    run(f, "INSERT INTO account (id, state, iban) VALUES ('A-1', '{}', 'X')");
    run(f,
        "INSERT INTO account (id, state) VALUES ('a-1', '{}'), ('A-1 ', '')");
    assert_int_equal(try_run(f, f->db,
                             "INSERT INTO account (id, state, count)"
                             " VALUES ('b', '', 1.5)"),
                     STATUS_PERMANENT);
    assert_int_equal(
        try_run(f, f->db, "INSERT INTO account (id, state) VALUES (NULL, '')"),
        STATUS_PERMANENT);
    assert_int_equal(try_run(f, f->db,
                             "INSERT INTO account (id, state, iban)"
                             " VALUES ('c', '', 'X')"),
                     STATUS_UNIQUE);
    assert_string_equal(f->diag.constraint, "account.iban");
    assert_int_equal(number(f, "SELECT count(*) FROM sqlite_schema WHERE name"
                               " IN ('idx_account_iban', 'idx_account_owner')"),
                     2);
}

static void a_table_that_exists_is_not_created_again(void **state)
{
    struct fixture *f = *state;

    ok(f, db_create_table(f->db, &shape, &f->diag));
    assert_int_equal(db_create_table(f->db, &shape, &f->diag),
                     STATUS_PERMANENT);
    assert_says(f, "account");
}

static void the_printed_statements_make_the_same_table(void **state)
{
    struct fixture *f = *state;
    struct buffer text = BUFFER_EMPTY;
    struct described d;

    db_print_table(f->db, &shape, &text);
    ok(f, db_script(f->db, buffer_text(&text), DB_HOST, &f->diag));
    buffer_free(&text);
    describe(f, &d, "account");
    assert_int_equal(d.shape.ncolumns, COUNT(columns));
    arena_free(&d.arena);
}

static void what_cannot_be_created_is_refused(void **state)
{
    struct fixture *f = *state;
    const struct db_shape_column wide = {
        .name = "amount", .kind = DB_KIND_DECIMAL, .precision = 19};
    const struct db_shape_column odd = {.name = "a\"b",
                                        .kind = DB_KIND_INTEGER};
    const struct db_shape too_wide = {"t", &wide, 1};
    const struct db_shape too_odd = {"t", &odd, 1};

    assert_int_equal(db_create_table(f->db, &too_wide, &f->diag),
                     STATUS_PERMANENT);
    assert_says(f, "at most 18");
    assert_non_null(db_column_fits(f->db, &wide, &columns[9]));
    assert_int_equal(db_create_table(f->db, &too_odd, &f->diag),
                     STATUS_PERMANENT);
    assert_int_equal(number(f, "SELECT count(*) FROM sqlite_schema"), 0);
}

static void a_missing_table_does_not_exist(void **state)
{
    struct fixture *f = *state;
    struct described d;

    describe(f, &d, "nowhere");
    assert_false(d.exists);
    arena_free(&d.arena);
}

static const struct db_shape_column *column_of(const struct described *d,
                                               const char *name)
{
    for (size_t i = 0; i < d->shape.ncolumns; i++) {
        if (strcmp(d->shape.columns[i].name, name) == 0)
            return &d->shape.columns[i];
    }
    fail_msg("no column %s", name);
    return NULL;
}

static void only_a_whole_index_of_one_column_makes_it_unique(void **state)
{
    struct fixture *f = *state;
    struct described d;

    run(f, "CREATE TABLE t (p INTEGER PRIMARY KEY, own UNIQUE, part, pair, two,"
           " nocase, plain, expr)");
    run(f, "CREATE UNIQUE INDEX i1 ON t (part) WHERE part > 1");
    run(f, "CREATE UNIQUE INDEX i2 ON t (pair, two)");
    run(f, "CREATE UNIQUE INDEX i3 ON t (nocase COLLATE NOCASE)");
    run(f, "CREATE INDEX i4 ON t (plain)");
    run(f, "CREATE UNIQUE INDEX i5 ON t (expr + 1)");
    describe(f, &d, "t");
    assert_true(column_of(&d, "own")->unique);
    assert_false(column_of(&d, "part")->unique);
    assert_false(column_of(&d, "part")->indexed);
    assert_false(column_of(&d, "pair")->unique);
    assert_false(column_of(&d, "two")->unique);
    assert_false(column_of(&d, "nocase")->unique);
    assert_false(column_of(&d, "plain")->unique);
    assert_true(column_of(&d, "plain")->indexed);
    assert_false(column_of(&d, "expr")->unique);
    assert_true(column_of(&d, "p")->primary);
    assert_false(column_of(&d, "p")->unique);
    arena_free(&d.arena);
}

static void another_type_or_collation_does_not_fit(void **state)
{
    struct fixture *f = *state;
    struct described d;
    const struct db_shape_column text = {.name = "a", .kind = DB_KIND_KEY};
    const struct db_shape_column integer = {.name = "a",
                                            .kind = DB_KIND_INTEGER};

    run(f, "CREATE TABLE t (a VARCHAR(20), b BIGINT, c TEXT COLLATE NOCASE,"
           " d NUMERIC, e)");
    describe(f, &d, "t");
    assert_null(db_column_fits(f->db, &text, column_of(&d, "a")));
    assert_null(db_column_fits(f->db, &integer, column_of(&d, "b")));
    assert_string_equal(db_column_fits(f->db, &integer, column_of(&d, "a")),
                        "INTEGER");
    assert_string_equal(db_column_fits(f->db, &text, column_of(&d, "c")),
                        "TEXT");
    assert_string_equal(column_of(&d, "c")->declared, "TEXT COLLATE NOCASE");
    assert_non_null(db_column_fits(f->db, &integer, column_of(&d, "d")));
    assert_non_null(db_column_fits(f->db, &text, column_of(&d, "e")));
    arena_free(&d.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_database(a_created_table_comes_back_as_its_shape),
        with_database(a_created_table_is_strict_and_compares_byte_by_byte),
        with_database(a_table_that_exists_is_not_created_again),
        with_database(the_printed_statements_make_the_same_table),
        with_database(what_cannot_be_created_is_refused),
        with_database(a_missing_table_does_not_exist),
        with_database(only_a_whole_index_of_one_column_makes_it_unique),
        with_database(another_type_or_collation_does_not_fit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
