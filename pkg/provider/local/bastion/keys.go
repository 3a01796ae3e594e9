package bastion

import (
	"bytes"
	"errors"
	"regexp"

	"golang.org/x/crypto/ssh"
)

// publicKey matches public keys in the format of OpenSSH.
var publicKey = regexp.MustCompile(`\b(ssh-ed25519|ssh-rsa|ecdsa-sha2-nistp(256|384|521)) [A-Za-z0-9+/]+=*`)

// authorizedKeys returns the public keys in user data, in the format of OpenSSH. The user data of a bastion is a script
// that writes the user's key to a file. This bastion has no operating system to run it, so only the keys are extracted.
func authorizedKeys(userData []byte) ([]byte, error) {
	var keys [][]byte
	for _, text := range publicKey.FindAll(userData, -1) {
		key, _, _, _, err := ssh.ParseAuthorizedKey(text)
		if err != nil {
			continue // not a valid key
		}
		keys = append(keys, ssh.MarshalAuthorizedKey(key))
	}
	if len(keys) == 0 {
		return nil, errors.New("spec.userData has no public key in the format of OpenSSH")
	}
	return bytes.Join(keys, nil), nil
}
