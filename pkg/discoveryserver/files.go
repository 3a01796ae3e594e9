package discoveryserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"github.com/trellis-k8s/trellis/pkg/issuer"
)

// rereadInterval is how often the files are read. A kubelet replaces files of a Secret within a minute or two.
const rereadInterval = 5 * time.Second

// files are the documents of an issuer in two files, which are reloaded when they change.
type files struct {
	configuration, keys string
	log                 logr.Logger
	clock               clock.WithTicker

	current atomic.Pointer[issuer.Documents]
}

// newFiles reads the documents of WorkloadIdentities. It returns nil if there are no files. The error names what is missing or not valid.
func newFiles(configuration, keys string, log logr.Logger, clk clock.WithTicker) (*files, error) {
	switch {
	case configuration == "" && keys == "":
		return nil, nil
	case configuration == "" || keys == "":
		return nil, errors.New("--workload-identity-openid-configuration-file and --workload-identity-jwks-file must be set together")
	}
	f := &files{configuration: configuration, keys: keys, log: log, clock: clk}
	if err := f.read(); err != nil {
		return nil, err
	}
	return f, nil
}

// NeedLeaderElection returns false, because every replica serves.
func (f *files) NeedLeaderElection() bool { return false }

// Start reads the files periodically until the context ends. While they are missing or not valid, it keeps the last documents, and logs the error once.
func (f *files) Start(ctx context.Context) error {
	ticker := f.clock.NewTicker(rereadInterval)
	defer ticker.Stop()
	failing := ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
		err := f.read()
		if err != nil && err.Error() != failing {
			f.log.Error(err, "Cannot reload the documents of workload identities; serving the previous ones until the files are valid")
		}
		failing = ""
		if err != nil {
			failing = err.Error()
		}
	}
}

func (f *files) read() error {
	var documents issuer.Documents
	for path, into := range map[string]*string{f.configuration: &documents.Configuration, f.keys: &documents.Keys} {
		text, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("read a document of workload identities: %w", err)
		}
		*into = string(text)
	}
	if _, err := documents.Check(); err != nil {
		return fmt.Errorf("the documents of workload identities in %s and %s: %w", f.configuration, f.keys, err)
	}
	f.current.Store(&documents)
	return nil
}

// find returns the current documents.
func (f *files) find() (issuer.Documents, bool) {
	if f == nil {
		return issuer.Documents{}, false
	}
	return *f.current.Load(), true
}
