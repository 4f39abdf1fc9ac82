/* Prints the rows of statements, which are read through cursors, two rows at a time.
   Arguments: a port of this machine, and statements. */

#include <mysql.h>
#include <stdio.h>
#include <stdlib.h>

#define COLUMNS 16
#define WIDTH 512

static void fail(const char *sql, unsigned number, const char *error)
{
    printf("%s: %u %s\n", sql, number, error);
    exit(1);
}

static void run(MYSQL *mysql, const char *sql)
{
    static char texts[COLUMNS][WIDTH];
    unsigned long lengths[COLUMNS], cursor = CURSOR_TYPE_READ_ONLY, rows = 2;
    my_bool nulls[COLUMNS];
    MYSQL_BIND bound[COLUMNS] = {0};
    MYSQL_STMT *stmt = mysql_stmt_init(mysql);
    unsigned columns, n;
    int told;

    mysql_stmt_attr_set(stmt, STMT_ATTR_CURSOR_TYPE, &cursor);
    mysql_stmt_attr_set(stmt, STMT_ATTR_PREFETCH_ROWS, &rows);
    if (mysql_stmt_prepare(stmt, sql, -1) || mysql_stmt_execute(stmt))
        fail(sql, mysql_stmt_errno(stmt), mysql_stmt_error(stmt));
    columns = mysql_stmt_field_count(stmt);
    printf("%s: %u columns\n", sql, columns);
    if (columns == 0 || columns > COLUMNS) {
        mysql_stmt_close(stmt);
        return;
    }
    for (n = 0; n < columns; n++) {
        bound[n].buffer_type = MYSQL_TYPE_STRING;
        bound[n].buffer = texts[n];
        bound[n].buffer_length = WIDTH;
        bound[n].length = &lengths[n];
        bound[n].is_null = &nulls[n];
    }
    if (mysql_stmt_bind_result(stmt, bound))
        fail(sql, mysql_stmt_errno(stmt), mysql_stmt_error(stmt));
    while ((told = mysql_stmt_fetch(stmt)) == 0) {
        for (n = 0; n < columns; n++)
            printf("%s%.*s", n ? "|" : "  ", nulls[n] ? 4 : (int)lengths[n],
                   nulls[n] ? "NULL" : texts[n]);
        printf("\n");
    }
    if (told != MYSQL_NO_DATA)
        fail(sql, mysql_stmt_errno(stmt), mysql_stmt_error(stmt));
    mysql_stmt_close(stmt);
}

int main(int count, char **arguments)
{
    MYSQL *mysql = mysql_init(NULL);
    int n;

    mysql_options(mysql, MYSQL_SET_CHARSET_NAME, "utf8mb4");
    if (!mysql_real_connect(mysql, "127.0.0.1", "root", "", "app", atoi(arguments[1]), NULL, 0))
        fail("connect", mysql_errno(mysql), mysql_error(mysql));
    for (n = 2; n < count; n++)
        run(mysql, arguments[n]);
    mysql_close(mysql);
    return 0;
}
