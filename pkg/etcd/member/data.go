package member

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// data is the content of the volume of a member.
type data struct{ directory string }

// identity is the persisted identity of a member.
type identity struct {
	// MemberID and ClusterID are formatted as etcd prints them.
	MemberID  string `json:"memberID"`
	ClusterID string `json:"clusterID"`
	// Endpoints are the client URLs of the other members.
	Endpoints []string `json:"endpoints,omitempty"`
	// Recorded is set once the Lease of the member has recorded the creation of the cluster.
	Recorded bool `json:"recorded"`
	// Follows is the epoch of the backups that the cluster continues or replaces; 0 for none.
	Follows int `json:"follows,omitempty"`
}

func (i identity) equal(other identity) bool {
	return i.MemberID == other.MemberID && i.ClusterID == other.ClusterID && i.Recorded == other.Recorded && i.Follows == other.Follows &&
		slices.Equal(i.Endpoints, other.Endpoints)
}

// etcdDirectory is the data directory of etcd. Its name is that of etcd-druid.
func (d data) etcdDirectory() string { return filepath.Join(d.directory, "new.etcd") }

func (d data) configFile() string   { return filepath.Join(d.directory, "etcd.conf.yaml") }
func (d data) identityFile() string { return filepath.Join(d.directory, "member.json") }

// exist reports whether etcd has data. Etcd creates its log in a temporary directory and renames it when it is
// complete.
func (d data) exist() (bool, error) {
	logs, err := filepath.Glob(filepath.Join(d.etcdDirectory(), "member", "wal", "*.wal"))
	if err != nil {
		return false, fmt.Errorf("look for the data of etcd: %w", err)
	}
	return len(logs) > 0, nil
}

// remove deletes the data of etcd and the identity of the member.
func (d data) remove() error {
	for _, path := range []string{d.identityFile(), d.etcdDirectory()} {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("remove the data of etcd: %w", err)
		}
	}
	return nil
}

// identity returns the persisted identity of the member. It is empty if the file does not exist or is not valid JSON.
func (d data) identity() (identity, error) {
	content, err := os.ReadFile(d.identityFile())
	if errors.Is(err, fs.ErrNotExist) {
		return identity{}, nil
	}
	if err != nil {
		return identity{}, fmt.Errorf("read the identity of the member: %w", err)
	}
	var read identity
	if !json.Valid(content) {
		return identity{}, nil // it is written again when etcd runs
	}
	if err := json.Unmarshal(content, &read); err != nil {
		return identity{}, fmt.Errorf("read the identity of the member in %s: %w", d.identityFile(), err)
	}
	return read, nil
}

// remember writes the identity atomically.
func (d data) remember(i identity) error {
	content, err := json.Marshal(i)
	if err != nil {
		return fmt.Errorf("write the identity of the member: %w", err)
	}
	return d.write(d.identityFile(), content)
}

// write replaces a file atomically. The content reaches the disk before the name, and the name before write returns, so
// that a loss of power never leaves an empty file.
func (d data) write(path string, content []byte) error {
	if err := os.MkdirAll(d.directory, 0o700); err != nil {
		return fmt.Errorf("create the directory of the member: %w", err)
	}
	file, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("write a file of the member: %w", err)
	}
	_, err = file.Write(content)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return fmt.Errorf("write a file of the member: %w", err)
	}
	directory, err := os.Open(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("write a file of the member: %w", err)
	}
	if err := errors.Join(directory.Sync(), directory.Close()); err != nil {
		return fmt.Errorf("write a file of the member: %w", err)
	}
	return nil
}
