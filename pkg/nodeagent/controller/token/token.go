// Package token writes tokens of programs on the machine to files.
package token

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"

	"github.com/trellis-k8s/trellis/pkg/nodeagent/cluster"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/host"
)

const (
	// dataKey is the key of a token in its Secret, and mode the mode of its file.
	dataKey = "token"
	mode    = 0o640
)

// Controller writes the token of a Secret to a file.
type Controller struct {
	Secret *cluster.Watched[corev1.Secret]
	Files  host.Files
	// Path is the path of the file.
	Path string
	Log  logr.Logger
}

// Run writes the token if the file has another one. If the Secret does not exist, the file stays.
func (c *Controller) Run(context.Context) (time.Duration, error) {
	secret, _ := c.Secret.Get()
	if secret == nil {
		return 0, nil
	}
	token := secret.Data[dataKey]
	if len(token) == 0 {
		return 0, fmt.Errorf("the Secret %s has no key %q: %s stays as it is", secret.Name, dataKey, c.Path)
	}
	current, err := c.Files.Read(c.Path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	if bytes.Equal(current, token) {
		return 0, nil
	}
	if err := c.Files.Write(c.Path, token, mode); err != nil {
		return 0, err
	}
	c.Log.Info("Wrote a token", "secret", secret.Name, "path", c.Path)
	return 0, nil
}
