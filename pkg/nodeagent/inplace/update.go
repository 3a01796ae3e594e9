package inplace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"github.com/trellis-k8s/trellis/pkg/nodeagent/cluster"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/controller/certificate"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/host"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/identity"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/loop"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/osc"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/paths"
)

// recordMode is the mode of the file of the record.
const recordMode = 0o600

// Updater updates the machine. Its methods must not be called concurrently.
type Updater struct {
	Client   *cluster.Client
	Files    identity.Files
	Systemd  host.Systemd
	Commands host.Commands
	// Applied returns the configuration that was applied last as a whole, or nil.
	Applied func() (*osc.Config, error)
	// Kubelet returns an error if kubelet is not healthy.
	Kubelet func(ctx context.Context) error
	Clock   clock.WithTicker
	Log     logr.Logger
}

// record is the content of the file of an update that was begun. It survives restarts of the node agent and of the machine.
type record struct {
	// Key identifies the configuration.
	Key string `json:"key"`
	Updates
	// Boot identifies the boot of the machine in which the command for the operating system was run; empty if it was not. Returned is set
	// if the command has ended, and the machine has to start again.
	Boot     string `json:"boot,omitempty"`
	Returned bool   `json:"returned,omitempty"`
	// Done are the steps that are done.
	Done []string `json:"done,omitempty"`
	// RetryAt is when a step that failed is tried again. Final is set if it is not, until there is another configuration.
	RetryAt time.Time `json:"retryAt,omitzero"`
	Final   bool      `json:"final,omitempty"`
}

// step is a step of an update.
type step struct {
	name   string
	needed bool
	run    func(ctx context.Context, node *corev1.Node, begun *record) error
}

// steps returns the steps of an update in their order. The tokens of a new service account key have controllers of their own.
func (u *Updater) steps(updates Updates) []step {
	return []step{
		{"kubelet is healthy", updates.Kubelet, u.awaitKubelet},
		{"operating system", updates.OperatingSystem != "", u.updateOperatingSystem},
		{"certificate of the node agent", updates.Authorities, u.renewOwn},
		{"certificate of kubelet", updates.Authorities, u.renewKubelet},
		{"Pods", true, u.deletePods},
		{"result", true, u.succeed},
	}
}

// Plan says what a configuration changes in place, and whether that may begin.
type Plan struct {
	Updates
	// MayBegin is set if nothing changes in place, if the Pods of the node are gone, or if an update was begun.
	MayBegin bool
	begun    *record
}

// InPlace reports whether the machine is updated in place, or an update that was begun has to end.
func (p Plan) InPlace() bool { return p.Any() || p.begun != nil }

// Plan returns what a configuration changes in place after the one that was applied last.
func (u *Updater) Plan(wanted, last *osc.Config, node *corev1.Node) (plan Plan, err error) {
	if plan.begun, err = u.read(); err != nil {
		return Plan{}, err
	}
	version := ""
	if wanted.InPlaceUpdates != nil && last != nil {
		if version, err = u.version(); err != nil {
			return Plan{}, err
		}
	}
	if plan.Updates, err = Needed(wanted, last, version); err != nil {
		return Plan{}, err
	}
	if plan.begun != nil {
		plan.Updates = plan.begun.and(plan.Updates)
	}
	plan.MayBegin = plan.begun != nil || !plan.Any() || MayBegin(node)
	return plan, nil
}

// Begin records that an update to the configuration with a key begins. Steps for the same configuration are not repeated.
func (u *Updater) Begin(key string, plan Plan) error {
	begun := record{Key: key}
	if plan.begun != nil && plan.begun.Key == key {
		if begun = *plan.begun; begun.Updates == plan.Updates {
			return nil
		}
	}
	u.Log.Info("Updates the machine in place", "updates", plan.String())
	begun.Updates = plan.Updates
	return u.write(&begun)
}

// Finish executes the steps of an update that was begun, after its configuration was applied, and marks the Node with the result. done reports
// that nothing is left. Otherwise, again is the time until the next attempt; 0 if there is none before something changes.
func (u *Updater) Finish(ctx context.Context, node *corev1.Node) (again time.Duration, done bool, err error) {
	begun, err := u.read()
	if err != nil || begun == nil {
		return 0, err == nil, err
	}
	if node == nil || begun.Final && !u.isRepaired(begun) {
		return 0, false, nil
	}
	begun.Final = false
	if wait := begun.RetryAt.Sub(u.Clock.Now()); wait > 0 {
		return wait, false, nil
	}
	for _, each := range u.steps(begun.Updates) {
		if !each.needed || slices.Contains(begun.Done, each.name) {
			continue
		}
		again, err := u.step(ctx, node, begun, each)
		switch {
		case errors.Is(err, errReboots):
			return 0, false, nil
		case err != nil || again > 0 || begun.Final:
			return again, false, err
		}
	}
	return 0, true, u.Files.Remove(paths.InPlaceUpdate)
}

// step executes a step, and records it.
func (u *Updater) step(ctx context.Context, node *corev1.Node, begun *record, each step) (again time.Duration, err error) {
	err = each.run(ctx, node, begun)
	var failed *failure
	if errors.As(err, &failed) {
		return u.failed(ctx, node, begun, failed, each.name)
	}
	if err != nil && !errors.Is(err, certificate.ErrRenewed) {
		return 0, fmt.Errorf("update the machine in place: %s: %w", each.name, err)
	}
	u.Log.Info("Updated the machine in place", "step", each.name)
	begun.Done = append(begun.Done, each.name)
	if stored := u.write(begun); stored != nil {
		return 0, stored
	}
	if err != nil { // the connection ends, and the next one goes on
		err = loop.End(err)
	}
	return 0, err
}

// failure is an error that the Node says, instead of only the log. The step is tried again after a while, unless the failure is final.
type failure struct {
	error
	final bool
}

// Unwrap returns the reason.
func (f *failure) Unwrap() error { return f.error }

// marks returns the merge patch of the metadata of a Node with a result. An empty value removes an annotation.
func marks(result, reason string, more map[string]any) ([]byte, error) {
	annotations := map[string]any{AnnotationReason: nil}
	if reason != "" {
		annotations[AnnotationReason] = reason
	}
	for key, value := range more {
		annotations[key] = value
	}
	metadata := map[string]any{"annotations": annotations}
	if result != "" {
		metadata["labels"] = map[string]any{LabelResult: result}
	}
	return json.Marshal(map[string]any{"metadata": metadata})
}

func (u *Updater) mark(ctx context.Context, node *corev1.Node, result, reason string, more map[string]any) error {
	patch, err := marks(result, reason, more)
	if err != nil {
		return err
	}
	return u.Client.PatchNode(ctx, node.Name, types.MergePatchType, patch, "")
}

// failed says on the Node that a step failed, and returns when it is tried again.
func (u *Updater) failed(ctx context.Context, node *corev1.Node, begun *record, why *failure, step string) (time.Duration, error) {
	u.Log.Error(why, "The update of the machine has failed", "step", step)
	wait := retryAfter
	if begun.Final = why.final; why.final {
		wait = 0
	}
	begun.RetryAt, begun.Boot = u.Clock.Now().Add(wait), ""
	return wait, errors.Join(u.write(begun), u.mark(ctx, node, Failed, step+": "+why.Error(), nil))
}

// succeed says that the update is done.
func (u *Updater) succeed(ctx context.Context, node *corev1.Node, _ *record) error {
	return u.mark(ctx, node, Successful, "", map[string]any{AnnotationVersion: nil})
}

// deletePods deletes the Pods that are left: those of DaemonSets start again with the new credentials and settings.
func (u *Updater) deletePods(ctx context.Context, node *corev1.Node, _ *record) error {
	return u.Client.DeletePods(ctx, node.Name)
}

// read returns the record of the update that was begun, or nil.
func (u *Updater) read() (*record, error) {
	content, err := u.Files.Read(paths.InPlaceUpdate)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	begun := &record{}
	if err := yaml.Unmarshal(content, begun); err != nil {
		return nil, fmt.Errorf("%s is not valid: remove it when the machine is as it should be: %w", paths.InPlaceUpdate, err)
	}
	return begun, nil
}

func (u *Updater) write(begun *record) error {
	content, err := yaml.Marshal(begun)
	if err != nil {
		return err
	}
	return u.Files.Write(paths.InPlaceUpdate, content, recordMode)
}

// version returns the version of the operating system that runs.
func (u *Updater) version() (string, error) {
	content, err := u.Files.Read(paths.Release)
	if err != nil {
		return "", fmt.Errorf("read the version of the operating system: %w", err)
	}
	return VersionOf(content)
}

// isRepaired reports whether an operating system whose update had failed runs in the new version, for example after a manual update.
func (u *Updater) isRepaired(begun *record) bool {
	version, err := u.version()
	return err == nil && version == begun.OperatingSystem
}

// boot identifies this boot of the machine.
func (u *Updater) boot() (string, error) {
	content, err := u.Files.Read(paths.BootID)
	if err != nil {
		return "", fmt.Errorf("read the identity of the boot: %w", err)
	}
	return strings.TrimSpace(string(content)), nil
}
