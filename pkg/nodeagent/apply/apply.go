// Package apply makes a machine what an OperatingSystemConfig asks for. It records its progress on the machine: after a crash or a reboot between
// any two steps, the next call goes on.
package apply

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/utils/ptr"

	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/containerd"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/host"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/osc"
	"github.com/trellis-k8s/trellis/pkg/nodeagent/paths"
)

// ErrRestart reports that the node agent has replaced itself: the process must end, and systemd starts the new program, which goes on.
var ErrRestart = errors.New("the node agent changed and must restart")

const (
	// publicMode is the mode of files without secrets that programs of other users read.
	publicMode = 0o644
	// unitsAtOnce is the number of units that start at once.
	unitsAtOnce = 4
)

// Applier applies configurations to a machine. Its methods must not be called concurrently.
type Applier struct {
	Files    host.Files
	Systemd  host.Systemd
	Images   host.Images
	Commands host.Commands
	// Secret returns the data of a Secret in the namespace kube-system, for files that take their content from it.
	Secret func(ctx context.Context, name string) (map[string][]byte, error)
	// Check returns an error if a program cannot replace the node agent. It gets the path of the program.
	Check func(ctx context.Context, program string) error
	// Probe returns an error if the host of a registry does not answer yet.
	Probe func(ctx context.Context, url string) error
	Log   logr.Logger
}

// Probe requests the URL of a registry's host. Any response is an answer.
func Probe(client *http.Client) func(ctx context.Context, url string) error {
	return func(ctx context.Context, url string) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		return response.Body.Close()
	}
}

// State returns the key of the configuration that was applied last as a whole, and of the one that is being applied. Either is empty if there is none.
func (a *Applier) State() (last, begun string, err error) {
	before, now := applied{}, pending{}
	_, lastErr := read(a.Files, paths.LastApplied, &before)
	_, begunErr := read(a.Files, paths.Pending, &now)
	return before.Key, now.Key, errors.Join(lastErr, begunErr)
}

// Last returns the configuration that was applied last as a whole, or nil if there is none or another one was begun since.
func (a *Applier) Last() (*osc.Config, error) {
	last := applied{}
	if found, err := a.Files.Exists(paths.Pending); found || err != nil {
		return nil, err
	}
	_, err := read(a.Files, paths.LastApplied, &last)
	return last.Config, err
}

// Applied returns the configuration that was applied last as a whole, or nil if there is none.
func (a *Applier) Applied() (*osc.Config, error) {
	last := applied{}
	_, err := read(a.Files, paths.LastApplied, &last)
	return last.Config, err
}

// Apply applies a configuration. key identifies its content. It returns ErrRestart if the process must end first. Any other error has all steps
// that failed; the next call repeats only these and those behind.
func (a *Applier) Apply(ctx context.Context, key string, wanted *osc.Config) error {
	before := applied{}
	if _, err := read(a.Files, paths.LastApplied, &before); err != nil {
		return err
	}
	now := pending{}
	found, err := read(a.Files, paths.Pending, &now)
	if err != nil {
		return err
	}
	if now.Key != key || !found {
		attempted := now.Touched
		now = pending{Key: key, Attempted: attempted, Touched: osc.Touched(wanted, before.Config, attempted)}
		// Before anything changes: on a full disk, nothing does.
		if err := write(a.Files, paths.Pending, now); err != nil {
			return err
		}
	}
	steps := osc.Plan(wanted, before.Config, now.Attempted)
	if err := a.run(ctx, steps); err != nil {
		return err
	}
	if err := write(a.Files, paths.LastApplied, applied{Key: key, Config: wanted}); err != nil {
		return err
	}
	// The record of what was begun goes last: without it, the configuration counts as applied.
	return errors.Join(a.Files.Remove(paths.Progress), a.Files.Remove(paths.Pending), a.Files.Remove(paths.Previous))
}

// run runs the steps phase by phase.
func (a *Applier) run(ctx context.Context, steps []osc.Step) error {
	done, err := progressOf(a.Files, steps)
	if err != nil {
		return err
	}
	for len(steps) > 0 {
		count := 1
		for count < len(steps) && steps[count].Phase == steps[0].Phase {
			count++
		}
		if err := a.phase(ctx, steps[:count], done); err != nil {
			return err
		}
		steps = steps[count:]
	}
	return nil
}

// phase runs the steps of a phase. Units start together, because one that fails may take minutes.
func (a *Applier) phase(ctx context.Context, steps []osc.Step, done *progress) error {
	group := errgroup.Group{}
	group.SetLimit(1)
	if steps[0].Phase == osc.Commands {
		group.SetLimit(unitsAtOnce)
	}
	errs := make([]error, len(steps))
	for i, step := range steps {
		if done.isDone(step) {
			continue
		}
		group.Go(func() error {
			errs[i] = a.step(ctx, step, done)
			return nil
		})
	}
	_ = group.Wait()
	return errors.Join(errs...)
}

func (a *Applier) step(ctx context.Context, step osc.Step, done *progress) error {
	if step.Action == osc.RestartSelf {
		// First recorded, then done: the new process does not restart itself again.
		return errors.Join(done.done(step), ErrRestart)
	}
	if err := a.execute(ctx, step); err != nil {
		return fmt.Errorf("%s: %w", step, err)
	}
	a.Log.Info("Changed the machine", "step", step.String())
	return done.done(step)
}

func (a *Applier) execute(ctx context.Context, step osc.Step) error {
	switch step.Action {
	case osc.ConfigureContainerd:
		return a.configureContainerd(ctx, step.CRI)
	case osc.WriteFile:
		return a.writeFile(ctx, step.File)
	case osc.RemovePath:
		return a.Files.Remove(step.Name)
	case osc.WriteRegistry:
		return a.writeRegistry(ctx, step.Registry)
	case osc.ReloadSystemd:
		return a.Systemd.Reload(ctx)
	case osc.EnableUnit:
		return a.Systemd.Enable(ctx, step.Name)
	case osc.DisableUnit:
		return a.Systemd.Disable(ctx, step.Name)
	case osc.StopUnit:
		return a.Systemd.Stop(ctx, step.Name)
	case osc.RestartUnit:
		return a.restart(ctx, step)
	case osc.RestartSelf: // in step
	}
	return fmt.Errorf("the action %q is not known", step.Action)
}

func (a *Applier) restart(ctx context.Context, step osc.Step) error {
	if step.Removes == "" {
		return a.Systemd.Restart(ctx, step.Name)
	}
	if err := a.Systemd.Stop(ctx, step.Name); err != nil {
		return err
	}
	if err := a.Files.Remove(step.Removes); err != nil {
		return err
	}
	return a.Systemd.Start(ctx, step.Name)
}

func (a *Applier) writeFile(ctx context.Context, file *extensionsv1alpha1.File) error {
	mode := ptr.Deref(file.Permissions, journalMode)
	switch {
	case file.Content.Inline != nil:
		content, err := osc.Inline(file.Content.Inline)
		if err != nil {
			return err
		}
		return a.Files.Write(file.Path, content, mode)
	case file.Content.SecretRef != nil:
		data, err := a.Secret(ctx, file.Content.SecretRef.Name)
		if err != nil {
			return err
		}
		content, found := data[file.Content.SecretRef.DataKey]
		if !found {
			return fmt.Errorf("the Secret %s has no key %q", file.Content.SecretRef.Name, file.Content.SecretRef.DataKey)
		}
		return a.Files.Write(file.Path, content, mode)
	case file.Content.ImageRef != nil:
		return a.writeImageFile(ctx, file, mode)
	}
	return errors.New("the file has no content")
}

// writeImageFile writes a file of an image. A program that replaces the node agent must pass its own check, and the old one is kept until the new
// one has applied its configuration.
func (a *Applier) writeImageFile(ctx context.Context, file *extensionsv1alpha1.File, mode uint32) error {
	var check func(string) error
	if file.Path == paths.Agent {
		check = func(program string) error {
			if err := a.refused(program); err != nil {
				return err
			}
			if err := a.Check(ctx, program); err != nil {
				return fmt.Errorf("the new node agent does not pass its check, and the old one stays: %w", err)
			}
			return a.keepPrevious()
		}
	}
	from := file.Content.ImageRef
	return a.Images.Open(ctx, from.Image, from.FilePathInImage, func(content io.Reader) error {
		return a.Files.WriteFrom(file.Path, mode, content, check)
	})
}

// refused returns an error if a program is the one that systemd replaced by its predecessor.
func (a *Applier) refused(program string) error {
	if found, err := a.Files.Exists(paths.Refused); err != nil || !found {
		return err
	}
	digests := [2][sha256.Size]byte{}
	for i, path := range []string{program, a.Files.Real(paths.Refused)} {
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		digests[i] = sha256.Sum256(content)
	}
	if digests[0] == digests[1] {
		return fmt.Errorf("this node agent ended repeatedly on this machine, and the old one stays: use another image, or remove %s", paths.Refused)
	}
	return nil
}

// keepPrevious keeps the program that runs, unless one is kept already: that one is known to work.
func (a *Applier) keepPrevious() error {
	for _, path := range []string{paths.Previous, paths.Agent} {
		if found, err := a.Files.Exists(path); err != nil || found == (path == paths.Previous) {
			return err
		}
	}
	return a.Files.Link(paths.Agent, paths.Previous)
}

func (a *Applier) configureContainerd(ctx context.Context, cri *extensionsv1alpha1.CRIConfig) error {
	for _, directory := range []string{paths.ContainerdRuntimes, paths.ContainerdImports, paths.ContainerdRegistries} {
		if err := a.Files.MakeDirectory(directory); err != nil {
			return err
		}
	}
	found, err := a.Files.Exists(paths.ContainerdConfig)
	if err != nil {
		return err
	}
	var before []byte
	if found {
		before, err = a.Files.Read(paths.ContainerdConfig)
	} else {
		before, err = a.Commands.Run(ctx, "containerd", "config", "default")
	}
	if err != nil {
		return err
	}
	config, err := containerd.Config(before, cri)
	if err != nil {
		return err
	}
	dropIn := "[Service]\nEnvironment=\"PATH=" + paths.ContainerdRuntimes + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\"\n"
	return errors.Join(a.Files.Write(paths.ContainerdConfig, config, publicMode), a.Files.Write(paths.ContainerdDropIn, []byte(dropIn), publicMode))
}

func (a *Applier) writeRegistry(ctx context.Context, registry *extensionsv1alpha1.RegistryConfig) error {
	if ptr.Deref(registry.ReadinessProbe, false) {
		for _, host := range registry.Hosts {
			if err := a.Probe(ctx, host.URL); err != nil {
				return fmt.Errorf("%s does not answer yet: %w", host.URL, err)
			}
		}
	}
	return a.Files.Write(paths.ContainerdRegistries+"/"+registry.Upstream+"/hosts.toml", containerd.Hosts(registry), publicMode)
}
