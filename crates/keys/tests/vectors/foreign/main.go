// Vectors of recipients from two foreign implementations: filippo.io/age for X25519, and
// github.com/emmansun/gmsm for SM2. The text form of SM2 keys is computed here once more.
//
//	go run . make > ../recipients.txt       writes what the crate's tests open
//	go run . check ../recipients_ours.txt   opens what the crate has wrapped
package main

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log"
	"math/big"
	"os"
	"strings"

	"filippo.io/age"
	"github.com/emmansun/gmsm/sm2"
)

const letters = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"

// Bech32 of BIP 173.
func polymod(values []byte) uint32 {
	generator := []uint32{0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3}
	check := uint32(1)
	for _, value := range values {
		top := check >> 25
		check = (check&0x1ffffff)<<5 ^ uint32(value)
		for i, g := range generator {
			if top>>i&1 == 1 {
				check ^= g
			}
		}
	}
	return check
}

func encode(hrp string, data []byte) string {
	var values []byte
	for _, c := range []byte(hrp) {
		values = append(values, c>>5)
	}
	values = append(values, 0)
	for _, c := range []byte(hrp) {
		values = append(values, c&31)
	}
	start := len(values)
	var bits, count uint
	for _, b := range data {
		bits = bits<<8 | uint(b)
		for count += 8; count >= 5; {
			count -= 5
			values = append(values, byte(bits>>count&31))
		}
	}
	if count > 0 {
		values = append(values, byte(bits<<(5-count)&31))
	}
	check := polymod(append(append([]byte{}, values...), 0, 0, 0, 0, 0, 0)) ^ 1
	for i := 5; i >= 0; i-- {
		values = append(values, byte(check>>(5*i)&31))
	}
	text := hrp + "1"
	for _, value := range values[start:] {
		text += string(letters[value])
	}
	return text
}

func compressed(key *sm2.PrivateKey) []byte {
	return append([]byte{2 + byte(key.Y.Bit(0))}, key.X.FillBytes(make([]byte, 32))...)
}

func sm2Key(secret []byte) *sm2.PrivateKey {
	key := new(sm2.PrivateKey)
	key.D = new(big.Int).SetBytes(secret)
	key.Curve = sm2.P256()
	key.X, key.Y = key.Curve.ScalarBaseMult(secret)
	return key
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func record(suite, identity, recipient string, fileKey, stanza []byte) {
	fmt.Printf("\nsuite = %s\nidentity = %s\nrecipient = %s\nfile key = %x\nstanza = %x\n",
		suite, identity, recipient, fileKey, stanza)
}

func makeVectors() {
	fmt.Println("# Written by foreign/main.go, with filippo.io/age and github.com/emmansun/gmsm.")
	for range 4 {
		fileKey := make([]byte, 16)
		rand.Read(fileKey)
		identity := must(age.GenerateX25519Identity())
		stanzas := must(identity.Recipient().Wrap(fileKey))
		share := must(base64.RawStdEncoding.DecodeString(stanzas[0].Args[0]))
		stanza := append(share, stanzas[0].Body...)
		record("aes", identity.String(), identity.Recipient().String(), fileKey, stanza)
	}
	for range 4 {
		fileKey := make([]byte, 16)
		rand.Read(fileKey)
		key := must(sm2.GenerateKey(rand.Reader))
		stanza := must(sm2.Encrypt(rand.Reader, &key.PublicKey, fileKey, nil))
		secret := key.D.FillBytes(make([]byte, 32))
		identity := strings.ToUpper(encode("sm2-secret-key-", secret))
		record("sm", identity, encode("sm2pub", compressed(key)), fileKey, stanza)
	}
}

func check(record map[string]string) error {
	fileKey := must(hex.DecodeString(record["file key"]))
	stanza := must(hex.DecodeString(record["stanza"]))
	var opened []byte
	switch record["suite"] {
	case "aes":
		identity := must(age.ParseX25519Identity(record["identity"]))
		if identity.Recipient().String() != record["recipient"] {
			return errors.New("another recipient")
		}
		share := base64.RawStdEncoding.EncodeToString(stanza[:32])
		opened = must(identity.Unwrap([]*age.Stanza{{Type: "X25519", Args: []string{share}, Body: stanza[32:]}}))
	case "sm":
		secret := must(hex.DecodeString(record["secret"]))
		key := sm2Key(secret)
		if strings.ToUpper(encode("sm2-secret-key-", secret)) != record["identity"] {
			return errors.New("another text of the identity")
		}
		if encode("sm2pub", compressed(key)) != record["recipient"] {
			return errors.New("another recipient")
		}
		opened = must(sm2.Decrypt(key, stanza))
	default:
		return errors.New("unknown suite")
	}
	if !bytes.Equal(opened, fileKey) {
		return errors.New("another file key")
	}
	return nil
}

func checkFile(path string) {
	file := must(os.Open(path))
	scanner := bufio.NewScanner(file)
	record, count := map[string]string{}, 0
	flush := func() {
		if len(record) == 0 {
			return
		}
		if err := check(record); err != nil {
			log.Fatalf("record %d: %v", count+1, err)
		}
		record = map[string]string{}
		count++
	}
	for scanner.Scan() {
		name, value, found := strings.Cut(scanner.Text(), " = ")
		switch {
		case scanner.Text() == "":
			flush()
		case found && !strings.HasPrefix(name, "#"):
			record[name] = value
		}
	}
	flush()
	if count == 0 {
		log.Fatal("no records")
	}
	fmt.Printf("%d records open\n", count)
}

func main() {
	switch {
	case len(os.Args) == 2 && os.Args[1] == "make":
		makeVectors()
	case len(os.Args) == 3 && os.Args[1] == "check":
		checkFile(os.Args[2])
	default:
		log.Fatal("usage: make, or check FILE")
	}
}
