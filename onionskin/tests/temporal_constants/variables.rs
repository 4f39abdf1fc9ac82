//! Values of user variables, in statements that are prepared in SQL.

use super::*;

/// Values of user variables and literals, in statements that are prepared in SQL.
pub fn user_variables_mean_what_they_mean_to_the_server(kind: Kind) {
    let Some(mut scene) = Scene::start(kind) else {
        return;
    };
    let dates = [
        "'2020-01-01'",
        "'2020-01-01 12:30:00'",
        "20200101",
        "20200101123000",
        "0",
        "NULL",
    ];
    let years = ["2020", "'2020'", "20", "'12 '", "-1", "1999", "NULL"];
    let times = ["'12:00:00'", "120000", "-10000", "'-01:00:00'", "NULL"];
    let numbers = ["1", "'1'", "1e0", "9007199254740992", "2.5", "NULL"];
    let columns: [(&str, &[&str]); 7] = [
        ("dt", &dates),
        ("t", &dates),
        ("ts", &dates),
        ("y", &years),
        ("ti", &times),
        ("b", &numbers),
        ("d", &numbers),
    ];
    for (column, values) in columns {
        for form in FORMS {
            let alone = !form.contains("<B>");
            for a in values {
                for b in values.iter().take(if alone { 1 } else { values.len() }) {
                    for places in [["?", "?"], ["?", *b]] {
                        let condition = form.replace("{}", column);
                        let condition = condition.replace("<A>", places[0]);
                        let condition = condition.replace("<B>", places[1]);
                        let using = match (places[1], condition.matches('?').count()) {
                            ("?", 2) => "@a, @b",
                            ("?", 3) => "@a, @b, @a",
                            (_, 2) => "@a, @a",
                            _ => "@a",
                        };
                        let text = condition.replace('\'', "''");
                        let seen = |client: &mut Client| {
                            client.must(&format!("SET @a = {a}, @b = {b}"));
                            let prepare = "PREPARE st FROM 'SELECT id FROM m WHERE";
                            match client.text(&format!("{prepare} {text}'")) {
                                Seen::Done { .. } => {}
                                other => return other,
                            }
                            let seen = client.text(&format!("EXECUTE st USING {using}"));
                            client.text("DEALLOCATE PREPARE st");
                            seen
                        };
                        let protected = seen(&mut scene.bare);
                        if matches!(protected, Seen::Refused(_)) {
                            *scene.refused.entry(form.to_string()).or_default() += 1;
                            continue;
                        }
                        scene.answers += 1;
                        let plain = seen(&mut scene.plain);
                        if plain != protected {
                            scene.different.push(format!(
                                "{condition} with {a}, {b}\n    plain {plain:?}\n    proxy {protected:?}"
                            ));
                        }
                    }
                }
            }
        }
    }
    scene.conclude();
}
