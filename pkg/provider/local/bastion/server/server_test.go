package server

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"io"
	"net"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

func newKey(t *testing.T) ssh.Signer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

func dial(address, user string, key ssh.Signer) (*ssh.Client, error) {
	return ssh.Dial("tcp", address, &ssh.ClientConfig{
		User: user, Auth: []ssh.AuthMethod{ssh.PublicKeys(key)}, HostKeyCallback: ssh.InsecureIgnoreHostKey(),
	})
}

// TestServer checks that users with a key reach the allowed port of another host and nothing else, and that other users are
// refused.
func TestServer(t *testing.T) {
	machine := listen(t)
	defer machine.Close()
	go func() {
		for {
			connection, err := machine.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(connection, "hello")
			_ = connection.Close()
		}
	}()
	key, other := newKey(t), newKey(t)
	keys, err := ParseKeys(append(ssh.MarshalAuthorizedKey(newKey(t).PublicKey()), ssh.MarshalAuthorizedKey(key.PublicKey())...))
	if err != nil || len(keys) != 2 {
		t.Fatalf("%v, %v", keys, err)
	}
	address, _ := machine.Addr().(*net.TCPAddr)
	listener := listen(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- (&Server{Keys: keys, Ports: []uint32{uint32(address.Port)}}).Serve(ctx, listener)
	}()
	for user, wrong := range map[string]ssh.Signer{User: other, "root": key} {
		if _, err := dial(listener.Addr().String(), user, wrong); err == nil || !strings.Contains(err.Error(), "unable to authenticate") {
			t.Errorf("%s is authenticated: %v", user, err)
		}
	}
	client, err := dial(listener.Addr().String(), User, key)
	if err != nil {
		t.Fatal(err)
	}
	through, err := client.Dial("tcp", machine.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(through); err != nil || string(text) != "hello" {
		t.Errorf("the machine answers %q, %v", text, err)
	}
	if _, err := client.Dial("tcp", listener.Addr().String()); err == nil || !strings.Contains(err.Error(), "port forwarding is disabled") {
		t.Errorf("for another port: %v", err)
	}
	session, err := client.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	if output, err := session.Output("id"); err == nil || !strings.Contains(string(output), "This is a bastion") {
		t.Errorf("for a program: %q, %v", output, err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestParseKeys(t *testing.T) {
	if _, err := ParseKeys([]byte("ssh-ed25519 AAAA\n")); err == nil {
		t.Error("an invalid key is accepted")
	}
	if _, err := ParseKeys(make([]byte, maxKeysBytes+1)); err == nil || !strings.Contains(err.Error(), "more than the 65536 allowed") {
		t.Errorf("for a large file: %v", err)
	}
}
