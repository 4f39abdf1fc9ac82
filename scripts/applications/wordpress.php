<?php
// What a site's owner, writers and visitors do to WordPress, by its own functions. Each line that is printed must be the same
// on a plain server and through the proxy. `php wordpress.php install|use`; the environment names the server and the database.

define('DB_NAME', getenv('APP_DATABASE'));
define('DB_USER', 'root');
define('DB_PASSWORD', '');
define('DB_HOST', '127.0.0.1:' . getenv('APP_PORT'));
define('DB_CHARSET', 'utf8mb4');
define('DB_COLLATE', '');
define('WP_HOME', 'http://127.0.0.1');
define('WP_SITEURL', WP_HOME);
foreach (['AUTH', 'SECURE_AUTH', 'LOGGED_IN', 'NONCE'] as $kind) {
    define("{$kind}_KEY", "key of $kind");
    define("{$kind}_SALT", "salt of $kind");
}
define('WP_DEBUG', false);
define('WP_HTTP_BLOCK_EXTERNAL', true);
define('DISABLE_WP_CRON', true);
define('AUTOMATIC_UPDATER_DISABLED', true);
define('ABSPATH', getenv('APP_HOME') . '/');
$table_prefix = 'wp_';
if ($argv[1] === 'install') {
    define('WP_INSTALLING', true);
}
ini_set('sendmail_path', '/bin/true');
ini_set('error_log', '/dev/null');
// wp-load.php would look for a configuration
require ABSPATH . 'wp-settings.php';
require_once ABSPATH . 'wp-admin/includes/admin.php';
require_once ABSPATH . 'wp-admin/includes/upgrade.php';
$wpdb->hide_errors();
$wpdb->suppress_errors();

if ($argv[1] === 'install') {
    // tables that are asked for before they are made
    $EZSQL_ERROR = [];
    $made = wp_install('A site', 'admin', 'admin@example.org', true, '', 'a password');
    say('install', $made['user_id']);
    exit;
}

// One line: what it is, the result, and errors that the database gave meanwhile.
function say($what, $result)
{
    global $wpdb, $EZSQL_ERROR;
    $text = is_string($result) ? $result : json_encode($result);
    echo "$what: ", preg_replace('/\s+/', ' ', $text), "\n";
    foreach ((array) $EZSQL_ERROR as $error) {
        echo "  ERROR {$error['error_str']}\n    ", preg_replace('/\s+/', ' ', $error['query']), "\n";
    }
    $EZSQL_ERROR = [];
    $wpdb->last_error = '';
}

function found($what, $arguments)
{
    $query = new WP_Query($arguments);
    say($what, [$query->found_posts, wp_list_pluck($query->posts, 'post_title')]);
}

// writers and posts
$alice = wp_create_user('alice', 'pw1', 'alice@example.org');
say('user', wp_update_user(['ID' => $alice, 'first_name' => 'Alice', 'last_name' => 'Exämple', 'role' => 'editor']));
say('user again', is_wp_error(wp_create_user('ALICE', 'pw', 'other@example.org')));
say('mail again', is_wp_error(wp_create_user('bob', 'pw', 'Alice@example.org')));
say('login', [wp_check_password('pw1', get_userdata($alice)->user_pass), get_user_by('email', 'ALICE@example.org')->ID]);
$posts = [];
for ($i = 0; $i < 12; $i++) {
    $posts[] = wp_insert_post([
        'post_title' => "Post $i Ünï",
        'post_content' => "Body $i lorem " . str_repeat("word$i ", 20),
        'post_status' => $i % 3 ? 'publish' : 'draft',
        'post_author' => $alice,
        'tags_input' => ["tag$i", 'common'],
        'post_date' => sprintf('2024-%02d-%02d 10:%02d:00', 1 + $i % 9, 1 + $i, $i),
    ]);
    add_post_meta($posts[$i], 'price', (string) ($i * 10));
    add_post_meta($posts[$i], 'colour', $i % 2 ? 'red' : 'blue');
}
say('posts', count(array_filter($posts)));
wp_update_post(['ID' => $posts[1], 'post_content' => 'Changed body']);
say('revisions', count(wp_get_post_revisions($posts[1])));
say('title again', get_post(wp_insert_post(['post_title' => 'Post 1 Ünï', 'post_status' => 'private', 'post_date' => '2023-01-01 00:00:00']))->post_name);
$comments = [];
for ($i = 0; $i < 6; $i++) {
    $comments[] = wp_insert_comment([
        'comment_post_ID' => $posts[1],
        'comment_author' => "Bob $i",
        'comment_author_email' => "bob$i@example.org",
        'comment_content' => "Nice $i",
        'comment_approved' => $i % 2,
        'comment_date' => "2024-05-0" . (1 + $i) . " 11:00:00",
    ]);
}
say('comments', [count(array_filter($comments)), get_comments_number($posts[1])]);

// what visitors ask for
found('home', ['posts_per_page' => 4]);
found('page two', ['posts_per_page' => 4, 'paged' => 2]);
found('search', ['s' => 'lorem', 'posts_per_page' => 5]);
found('search by two words', ['s' => 'lorem word4', 'posts_per_page' => 5]);
found('search without a word', ['s' => 'lorem -word4', 'posts_per_page' => 3]);
found('tag', ['tag' => 'common', 'posts_per_page' => 3, 'orderby' => 'title', 'order' => 'ASC']);
found('two terms', ['tax_query' => ['relation' => 'AND', ['taxonomy' => 'post_tag', 'field' => 'slug', 'terms' => ['tag1', 'tag2']],
    ['taxonomy' => 'category', 'field' => 'term_id', 'terms' => [1]]]]);
found('not this tag', ['tax_query' => [['taxonomy' => 'post_tag', 'field' => 'slug', 'terms' => ['tag1'], 'operator' => 'NOT IN']], 'posts_per_page' => 2]);
found('by a number in a meta', ['meta_key' => 'price', 'orderby' => 'meta_value_num', 'order' => 'DESC', 'posts_per_page' => 3]);
found('by metas', ['meta_query' => [['key' => 'price', 'value' => 50, 'compare' => '>=', 'type' => 'NUMERIC'], ['key' => 'colour', 'value' => 'red']]]);
found('meta like', ['meta_query' => [['key' => 'colour', 'value' => 'bl', 'compare' => 'LIKE']]]);
found('without a meta', ['meta_query' => [['key' => 'nothing', 'compare' => 'NOT EXISTS']], 'posts_per_page' => 2]);
found('meta between', ['meta_query' => [['key' => 'price', 'value' => [20, 80], 'type' => 'NUMERIC', 'compare' => 'BETWEEN']]]);
found('dates', ['date_query' => [['after' => '2024-02-01', 'before' => '2024-06-01']]]);
found('a month', ['year' => 2024, 'monthnum' => 3]);
found('a day of the week', ['date_query' => [['dayofweek' => 2]]]);
found('author', ['author_name' => 'alice', 'posts_per_page' => 2]);
found('any', ['post_status' => 'any', 'post_type' => 'any', 'posts_per_page' => 3, 'orderby' => 'title']);
found('address', ['name' => 'post-1-uni']);
found('most comments', ['orderby' => ['comment_count' => 'DESC', 'ID' => 'ASC'], 'posts_per_page' => 2]);
found('not these', ['post__not_in' => [$posts[1], $posts[2]], 'posts_per_page' => 2]);
say('months', wp_get_archives(['echo' => 0]));
say('days', wp_get_archives(['echo' => 0, 'type' => 'daily']));
say('by title', wp_get_archives(['echo' => 0, 'type' => 'alpha', 'limit' => 3]));
say('cloud', wp_tag_cloud(['echo' => 0]));
say('next', get_next_post() ? get_next_post()->post_title : null);
say('recent', wp_list_pluck(wp_get_recent_posts(['numberposts' => 2], OBJECT), 'post_title'));
say('comments that say', wp_list_pluck(get_comments(['search' => 'Nice', 'number' => 3, 'order' => 'ASC']), 'comment_author'));
say('comments of', wp_list_pluck(get_comments(['author_email' => 'bob1@example.org']), 'comment_author'));
say('pages', wp_list_pluck(get_pages(), 'post_title'));

// what the administration shows
say('counts', wp_count_posts());
say('comment counts', wp_count_comments());
say('user counts', count_users());
say('terms', wp_list_pluck(get_terms(['taxonomy' => 'post_tag', 'orderby' => 'count', 'order' => 'DESC', 'number' => 1]), 'name'));
say('terms like', wp_list_pluck(get_terms(['taxonomy' => 'post_tag', 'search' => 'tag1']), 'name'));
say('users like', wp_list_pluck((new WP_User_Query(['search' => '*ali*', 'count_total' => true]))->get_results(), 'user_login'));
say('users by role', wp_list_pluck(get_users(['role' => 'editor']), 'user_login'));
say('users by meta', wp_list_pluck(get_users(['meta_key' => 'first_name', 'meta_value' => 'Alice']), 'user_login'));
say('writers', wp_list_pluck(get_users(['has_published_posts' => true]), 'user_login'));
say('posts of', [count_user_posts($alice), count_many_users_posts([1, $alice])]);
say('months of posts', $wpdb->get_results("SELECT DISTINCT YEAR(post_date) AS year, MONTH(post_date) AS month FROM $wpdb->posts WHERE post_type = 'post' ORDER BY post_date DESC"));

// options, transients, jobs
update_option('an_option', ['a' => 1]);
say('option', get_option('an_option'));
delete_option('an_option');
say('no option', get_option('an_option'));
set_transient('short', 'x', 60);
say('transient', get_transient('short'));
foreach (['_transient', '_site_transient'] as $kind) {
    update_option("{$kind}_timeout_old", time() - 1000);
    update_option("{$kind}_old", 'x');
}
delete_expired_transients(true);
say('transients', $wpdb->get_col("SELECT option_name FROM $wpdb->options WHERE option_name LIKE '%transient%old' ORDER BY 1"));
foreach (['wp_scheduled_delete', 'wp_scheduled_auto_draft_delete', 'delete_expired_transients', 'wp_privacy_delete_old_export_files'] as $job) {
    do_action($job);
    say($job, 'done');
}

// changes
say('category', wp_set_post_categories($posts[2], [wp_create_category('News')]));
say('categories', wp_list_pluck(get_the_category($posts[2]), 'name'));
wp_trash_post($posts[4]);
say('trashed', get_post_status($posts[4]));
wp_untrash_post($posts[4]);
wp_delete_post($posts[5], true);
say('deleted', get_post($posts[5]));
wp_delete_comment($comments[0], true);
wp_spam_comment($comments[1]);
say('comments left', get_comments_number($posts[1]));
$term = get_term_by('slug', 'tag3', 'post_tag');
wp_delete_term($term->term_id, 'post_tag');
say('no term', get_term_by('slug', 'tag3', 'post_tag'));
wp_update_term_count_now([1], 'category');
say('term count', get_term(1)->count > 0);
wp_delete_user($alice, 1);
say('no user', get_userdata($alice));
say('upgrade', dbDelta(wp_get_db_schema('all'), true));
say('charset', [$wpdb->get_col_charset($wpdb->posts, 'post_title'), $wpdb->get_col_length($wpdb->posts, 'post_name')]);
