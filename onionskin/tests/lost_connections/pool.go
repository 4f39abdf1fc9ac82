// A pool of database/sql, whose connections the server closes while they are idle.
package main

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"os"

	_ "github.com/go-sql-driver/mysql"
)

const size = 5

func main() {
	db, err := sql.Open("mysql", "root@tcp(127.0.0.1:"+os.Args[1]+")/app")
	check(err)
	db.SetMaxIdleConns(size)
	db.SetMaxOpenConns(size)
	var held []*sql.Conn
	for i := 0; i < size; i++ {
		conn, err := db.Conn(context.Background())
		check(err)
		check(conn.PingContext(context.Background()))
		held = append(held, conn)
	}
	for _, conn := range held {
		check(conn.Close())
	}
	fmt.Println("ready")
	bufio.NewReader(os.Stdin).ReadString('\n')
	for i := 0; i < 2*size; i++ {
		var name string
		err := db.QueryRow("SELECT name FROM t WHERE id = 1").Scan(&name)
		fmt.Println(name, err)
		var id int
		err = db.QueryRow("SELECT id FROM t WHERE id = ?", 1).Scan(&id)
		fmt.Println(id, err)
	}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
