package bastion

import (
	"bytes"
	"errors"
	"regexp"

	"golang.org/x/crypto/ssh"
)

// publicKey finds public keys in the format of OpenSSH.
var publicKey = regexp.MustCompile(`\b(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(256|384|521)) [A-Za-z0-9+/]+=*`)

// authorizedKeys returns the public keys that user data lets in, in the format of OpenSSH. The user data of bastions is a program that writes the
// key of the user into a file. This bastion has no operating system that would run it, so that only the keys in it are used.
func authorizedKeys(userData []byte) ([]byte, error) {
	var keys [][]byte
	for _, text := range publicKey.FindAll(userData, -1) {
		key, _, _, _, err := ssh.ParseAuthorizedKey(text)
		if err != nil {
			continue // it only looks like one
		}
		keys = append(keys, ssh.MarshalAuthorizedKey(key))
	}
	if len(keys) == 0 {
		return nil, errors.New("spec.userData has no public key in the format of OpenSSH")
	}
	return bytes.Join(keys, nil), nil
}
