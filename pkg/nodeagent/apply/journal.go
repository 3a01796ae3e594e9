package apply

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"sigs.k8s.io/yaml"

	"github.com/trellis-k8s/trellis/pkg/nodeagent/host"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/osc"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/paths"
)

// journalMode is the mode of the files of the journal: configurations may have secrets.
const journalMode = 0o600

// applied is the content of the file of the last configuration that was applied as a whole.
type applied struct {
	// Key identifies the configuration.
	Key string `json:"key"`
	*osc.Config
}

// pending is the content of the file of the configuration that is being applied.
type pending struct {
	Key string `json:"key"`
	// Attempted is what configurations before may have changed, Touched also what this one may have changed.
	Attempted *osc.Config `json:"attempted,omitempty"`
	Touched   *osc.Config `json:"touched"`
}

// progress records which steps of a plan are done. It is stored after each step.
type progress struct {
	files host.Files
	mu    sync.Mutex

	// Plan is the digest of the plan. Another plan has no progress.
	Plan string   `json:"plan"`
	Done []string `json:"done,omitempty"`
}

// read reads a file of the journal. It reports false if there is none.
func read(files host.Files, path string, into any) (bool, error) {
	content, err := files.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if err := yaml.Unmarshal(content, into); err != nil {
		return false, fmt.Errorf("%s is not valid: remove it, and the whole configuration is applied again: %w", path, err)
	}
	return true, nil
}

func write(files host.Files, path string, value any) error {
	content, err := yaml.Marshal(value)
	if err != nil {
		return err
	}
	return files.Write(path, content, journalMode)
}

// progressOf returns the progress of a plan.
func progressOf(files host.Files, steps []osc.Step) (*progress, error) {
	content, err := json.Marshal(steps)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(content)
	p := &progress{files: files}
	if _, err := read(files, paths.Progress, p); err != nil {
		return nil, err
	}
	if digest := hex.EncodeToString(sum[:]); p.Plan != digest {
		p.Plan, p.Done = digest, nil
	}
	return p, nil
}

func (p *progress) isDone(step osc.Step) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range p.Done {
		if id == step.ID() {
			return true
		}
	}
	return false
}

func (p *progress) done(step osc.Step) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Done = append(p.Done, step.ID())
	return write(p.files, paths.Progress, p)
}
