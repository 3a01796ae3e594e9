package flow

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// ledgerKey is the data key in the Secret of a ledger.
	ledgerKey = "ledger.json"
	// labelPersist marks a Secret that is saved in the state of a Shoot, and so moves with it to another seed.
	labelPersist = "persist"
)

// Entry is a past event that can no longer be observed.
type Entry struct {
	// Value is the subject of the event, such as the name of a key.
	Value string `json:"value"`
	// Time is when the entry was written, after the event.
	Time time.Time `json:"time"`
}

// Ledger records completed irreversible actions of a flow for one owner. It is an input of plans, like all observed
// state.
type Ledger struct {
	entries map[string]Entry
	// secret is the Secret that was read, nil if there is none.
	secret *corev1.Secret
	key    Key
	// local is [Ledgers.Local].
	local bool
}

// ReadLedger reads a ledger from the API server. It returns an empty ledger if the Secret does not exist. It returns an
// error if the ledger cannot be decoded. A flow must not continue without it.
func ReadLedger(ctx context.Context, uncached client.Reader, key Key) (*Ledger, error) {
	ledger := &Ledger{entries: map[string]Entry{}, key: key}
	secret := &corev1.Secret{}
	err := uncached.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: key.Name}, secret)
	if apierrors.IsNotFound(err) {
		return ledger, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the ledger in Secret %s: %w", key, err)
	}
	ledger.secret = secret
	if err := json.Unmarshal(secret.Data[ledgerKey], &ledger.entries); err != nil {
		return nil, fmt.Errorf("read the ledger in key %s of Secret %s: %w", ledgerKey, key, err)
	}
	return ledger, nil
}

// Ledgers reads the ledgers of a flow. It sends no request for a ledger that has not changed. It is safe for concurrent
// use, with one reader per ledger at a time.
type Ledgers struct {
	// Cached reads the metadata of Secrets from a cache.
	Cached client.Reader
	// Uncached reads from the API server.
	Uncached client.Reader
	// Local is set if the events concern objects that stay in the seed when a Shoot moves, such as volumes. The ledgers are
	// then not saved in the state of the Shoot: at the destination, they would report events that did not happen there.
	Local bool

	mu    sync.Mutex
	known map[Key]*Ledger
}

// Read returns a ledger as stored in the API server. It returns the last known ledger if the cache shows the same
// version, or still shows that it does not exist.
func (l *Ledgers) Read(ctx context.Context, key Key) (*Ledger, error) {
	shown := &metav1.PartialObjectMetadata{}
	shown.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	err := client.IgnoreNotFound(l.Cached.Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: key.Name}, shown))
	if err != nil {
		return nil, fmt.Errorf("read the metadata of the ledger in Secret %s: %w", key, err)
	}
	l.mu.Lock()
	known := l.known[key]
	l.mu.Unlock()
	if known != nil && known.version() == shown.ResourceVersion {
		return known, nil
	}
	ledger, err := ReadLedger(ctx, l.Uncached, key)
	if err != nil {
		return nil, err
	}
	ledger.local = l.Local
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known == nil {
		l.known = map[Key]*Ledger{}
	}
	l.known[key] = ledger
	return ledger, nil
}

// Forget frees the memory of a ledger whose owner was deleted.
func (l *Ledgers) Forget(key Key) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.known, key)
}

// NewLedger returns a ledger with the given entries, for plans in tests and previews.
func NewLedger(key Key, entries map[string]Entry) *Ledger {
	return &Ledger{entries: maps.Clone(entries), key: key}
}

// Entry returns an entry, and whether it exists.
func (l *Ledger) Entry(name string) (Entry, bool) {
	entry, found := l.entries[name]
	return entry, found
}

// Done reports whether the task has an entry. A ledger that is not known has none.
func (l *Ledger) Done(task Task) bool { return l != nil && l.Has(task.Name, task.Value) }

// Has reports whether an entry with this value exists.
func (l *Ledger) Has(name, value string) bool {
	entry, found := l.entries[name]
	return found && entry.Value == value
}

// version is the resourceVersion of the Secret; empty if there is none.
func (l *Ledger) version() string {
	if l.secret == nil {
		return ""
	}
	return l.secret.ResourceVersion
}

// Label corrects the label of a ledger that a version of the program wrote before [Ledgers.Local] was set.
func (l *Ledger) Label(ctx context.Context, writer client.Writer) error {
	if l.secret == nil || (l.secret.Labels[labelPersist] == "true") != l.local {
		return nil
	}
	secret := l.secret.DeepCopy()
	l.label(secret)
	if err := writer.Update(ctx, secret); err != nil {
		return fmt.Errorf("write the label %s of the ledger in Secret %s: %w", labelPersist, l.key, err)
	}
	l.secret = secret
	return nil
}

func (l *Ledger) label(secret *corev1.Secret) {
	if l.local {
		delete(secret.Labels, labelPersist)
		return
	}
	metav1.SetMetaDataLabel(&secret.ObjectMeta, labelPersist, "true")
}

// Write adds an entry. It fails if another writer has changed the ledger since it was read, so that no entry is lost.
func (l *Ledger) Write(ctx context.Context, writer client.Writer, owner Owner, name string, entry Entry) error {
	if err := l.Change(ctx, writer, owner.Flow, func(entries map[string]Entry) { entries[name] = entry }); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// Change changes the entries of a ledger of a flow. It fails like Write.
func (l *Ledger) Change(ctx context.Context, writer client.Writer, flow string, change func(entries map[string]Entry)) error {
	entries := maps.Clone(l.entries)
	if entries == nil {
		entries = map[string]Entry{}
	}
	change(entries)
	text, err := json.Marshal(entries)
	if err != nil {
		return fmt.Errorf("encode the ledger: %w", err)
	}
	secret := l.secret.DeepCopy()
	if secret == nil {
		secret = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: l.key.Namespace, Name: l.key.Name}, Type: corev1.SecretTypeOpaque}
		secret.Labels = map[string]string{LabelFlow: flow}
	}
	l.label(secret)
	secret.Data = map[string][]byte{ledgerKey: text}
	if l.secret == nil {
		err = writer.Create(ctx, secret)
	} else {
		err = writer.Update(ctx, secret)
	}
	if err != nil {
		return fmt.Errorf("write the ledger in Secret %s: %w", l.key, err)
	}
	l.secret, l.entries = secret, entries
	return nil
}
