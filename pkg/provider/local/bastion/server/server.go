// Package server implements the SSH server of a bastion. Users with an authorized key connect through it to the SSH
// servers of machines. It does not run programs.
package server

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/gliderlabs/ssh"
	gossh "golang.org/x/crypto/ssh"
)

// User is the name of the user for logins, as on other bastions of Gardener.
const User = "gardener"

const (
	// idleTimeout ends idle connections. maxTimeout ends all others. Bastions exist for at most a day.
	idleTimeout = 10 * time.Minute
	maxTimeout  = 24 * time.Hour
	// maxKeysBytes limits the size of the file with keys.
	maxKeysBytes = 64 << 10
)

// Server is the SSH server of a bastion.
type Server struct {
	// Keys are the authorized keys.
	Keys []ssh.PublicKey
	// Ports are the ports of other hosts to which connections are permitted.
	Ports []uint32
}

// ParseKeys parses public keys in the format of OpenSSH, one per line.
func ParseKeys(text []byte) ([]ssh.PublicKey, error) {
	if len(text) > maxKeysBytes {
		return nil, fmt.Errorf("the authorized keys have %d bytes, more than the %d allowed", len(text), maxKeysBytes)
	}
	var keys []ssh.PublicKey
	for len(text) > 0 {
		key, _, _, rest, err := ssh.ParseAuthorizedKey(text)
		if err != nil {
			return nil, fmt.Errorf("read the authorized keys: %w", err)
		}
		keys, text = append(keys, key), rest
	}
	return keys, nil
}

// Serve serves connections until the context ends. It generates a new host key, because bastions are short-lived.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return fmt.Errorf("generate the host key: %w", err)
	}
	signer, err := gossh.NewSignerFromKey(private)
	if err != nil {
		return fmt.Errorf("generate the host key: %w", err)
	}
	server := &ssh.Server{
		HostSigners: []ssh.Signer{signer}, IdleTimeout: idleTimeout, MaxTimeout: maxTimeout,
		Handler: func(session ssh.Session) {
			_, _ = io.WriteString(session, "This is a bastion: connect to a machine through it, with the option -J of ssh.\n")
			_ = session.Exit(1)
		},
		PublicKeyHandler: s.authorized,
		ChannelHandlers:  map[string]ssh.ChannelHandler{"session": ssh.DefaultSessionHandler, "direct-tcpip": ssh.DirectTCPIPHandler},
		LocalPortForwardingCallback: func(_ ssh.Context, _ string, port uint32) bool {
			return slices.Contains(s.Ports, port)
		},
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); err != nil && !errors.Is(err, ssh.ErrServerClosed) {
		return fmt.Errorf("serve SSH: %w", err)
	}
	return nil
}

// authorized reports whether a user may log in with a key.
func (s *Server) authorized(ctx ssh.Context, key ssh.PublicKey) bool {
	return ctx.User() == User && slices.ContainsFunc(s.Keys, func(one ssh.PublicKey) bool { return ssh.KeysEqual(one, key) })
}
