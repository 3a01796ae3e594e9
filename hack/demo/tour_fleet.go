package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
)

const (
	// fleetProject is the example Project.
	fleetProject = "dev"
	// explainedLines is the number of lines of a field's explanation that the tour shows.
	explainedLines = 14
	// fleetTimeout limits the creation of a Shoot, which takes about ten seconds on a machine with nothing else to do.
	fleetTimeout = 5 * time.Minute
)

// shoot is the example Shoot.
var shoot = client.ObjectKey{Namespace: "garden-dev", Name: "registry"}

// declared are the examples that the tour declares, ordered by their references.
var declared = []string{"fleet/core/project.yaml", "demo/cloudprofile.yaml", "demo/shoot.yaml"}

// kubectl runs kubectl as an administrator of the demo.
type kubectl struct {
	program, kubeconfig, cache string
}

// output runs kubectl and returns its output.
func (k kubectl) output(ctx context.Context, input []byte, args ...string) (string, error) {
	args = append([]string{"--kubeconfig", k.kubeconfig, "--cache-dir", k.cache}, args...)
	command := exec.CommandContext(ctx, k.program, args...) //nolint:gosec // the program and its arguments are those of the tour
	var out bytes.Buffer
	command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(input), &out, &out
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, &out)
	}
	return out.String(), nil
}

// declare declares a small fleet at the garden's API server, and follows how it comes to life.
func (g *guide) declare(ctx context.Context) error {
	g.heading("5 of 6: create a cluster (half a minute)")
	g.say(`This control plane is a garden: kube-apiserver passes requests for the kinds of a fleet on to the garden's API server, so
that kubectl works as with all other kinds. A second one is the cluster of a Seed, where gardenlet makes the control planes of
Shoots. The nodes of both are simulated; the programs of the control planes are real, and run as processes of this machine.
`)
	if err := g.awaitSeed(ctx, "local"); err != nil {
		return err
	}
	if err := g.kubectlShow(ctx, "get seeds"); err != nil {
		return err
	}
	g.say("")
	for _, file := range declared {
		content, err := fs.ReadFile(g.files, file)
		if err != nil {
			return fmt.Errorf("reading the example: %w", err)
		}
		g.say("  $ kubectl apply -f examples/%s", file)
		output, err := g.kubectl.output(ctx, content, "apply", "-f", "-")
		if err != nil {
			return err
		}
		g.show(output)
		if strings.HasSuffix(file, "/project.yaml") {
			if err := g.awaitProject(ctx, fleetProject); err != nil {
				return err
			}
		}
	}
	g.say(`
The controller-manager has made the namespace of the Project, and the rights of its members. Now the scheduler finds a Seed for
the Shoot, and gardenlet emits its control plane as ManagedResources:
`)
	if err := g.followShoot(ctx); err != nil {
		return err
	}
	g.say("")
	return g.kubectlShow(ctx, "get projects,cloudprofiles,shoots -A")
}

// kubectlShow runs kubectl, and prints the command and its output.
func (g *guide) kubectlShow(ctx context.Context, command string) error {
	g.say("  $ kubectl %s", command)
	output, err := g.kubectl.output(ctx, nil, strings.Fields(command)...)
	if err != nil {
		return err
	}
	g.show(output)
	return nil
}

// awaitSeed waits until a Seed is ready.
func (g *guide) awaitSeed(ctx context.Context, name string) error {
	seed := &corev1beta1.Seed{}
	var last error
	err := wait.PollUntilContextTimeout(ctx, pollInterval, fleetTimeout, true, func(ctx context.Context) (bool, error) {
		last = g.client.Get(ctx, client.ObjectKey{Name: name}, seed)
		return last == nil && !slices.ContainsFunc(seedConditions, func(kind corev1beta1.ConditionType) bool {
			condition := corev1beta1.FindCondition(seed.Status.Conditions, kind)
			return condition == nil || condition.Status != corev1beta1.ConditionTrue
		}), nil
	})
	if err != nil {
		return errors.Join(fmt.Errorf("waiting for the Seed %s, see gardenlet.log and seed-resource-manager.log: %w: its conditions are %+v",
			name, err, seed.Status.Conditions), last)
	}
	return nil
}

// seedConditions are the conditions of a Seed that is ready.
var seedConditions = []corev1beta1.ConditionType{corev1beta1.SeedGardenletReady, corev1beta1.SeedSystemComponentsHealthy, corev1beta1.SeedExtensionsReady}

// followShoot prints the operation of the Shoot until it has succeeded.
func (g *guide) followShoot(ctx context.Context) error {
	start, reported := time.Now(), ""
	current := &corev1beta1.Shoot{}
	err := wait.PollUntilContextTimeout(ctx, tourInterval, fleetTimeout, true, func(ctx context.Context) (bool, error) {
		if err := g.client.Get(ctx, shoot, current); err != nil {
			return false, err
		}
		last := current.Status.LastOperation
		if last == nil {
			return false, nil
		}
		if text := fmt.Sprintf("%-17s %3d %%  %s", string(last.Type)+" "+string(last.State), last.Progress, shorten(last.Description, 80)); text != reported {
			reported = text
			g.say("  %6s  %s", took(start), text)
		}
		return last.State == corev1beta1.LastOperationStateSucceeded && current.Status.ObservedGeneration == current.Generation, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for the Shoot %s, see scheduler.log, gardenlet.log and seed/*.log: %w: its last operation is %+v", shoot, err,
			current.Status.LastOperation)
	}
	return nil
}

// awaitProject waits until the controller-manager has made the namespace of a Project.
func (g *guide) awaitProject(ctx context.Context, name string) error {
	project := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Project"}}
	var last error
	err := wait.PollUntilContextTimeout(ctx, pollInterval, tourTimeout, true, func(ctx context.Context) (bool, error) {
		last = g.client.Get(ctx, client.ObjectKey{Name: name}, project)
		phase, _, err := unstructured.NestedString(project.Object, "status", "phase")
		return last == nil && phase == "Ready", err
	})
	if err != nil {
		return errors.Join(fmt.Errorf("waiting for the namespace of Project %s, see controller-manager.log: %w", name, err), last)
	}
	return nil
}

// explain shows the beginning of the explanation of a field. kube-apiserver reads the schemas of other API servers some
// time after their start.
func (g *guide) explain(ctx context.Context, field string) error {
	var output string
	var last error
	err := wait.PollUntilContextTimeout(ctx, pollInterval, tourTimeout, true, func(ctx context.Context) (bool, error) {
		output, last = g.kubectl.output(ctx, nil, "explain", field)
		return last == nil, nil
	})
	if err != nil {
		return errors.Join(fmt.Errorf("waiting for the explanation of %s: %w", field, err), last)
	}
	g.say("\n  $ kubectl explain %s", field)
	lines := strings.SplitAfterN(output, "\n", explainedLines+1)
	if len(lines) > explainedLines {
		lines[explainedLines] = "…\n"
	}
	g.show(strings.Join(lines, ""))
	return nil
}

// show prints the output of a command, indented.
func (g *guide) show(output string) {
	for line := range strings.Lines(strings.TrimRight(output, "\n")) {
		g.say("%s", strings.TrimRight("  "+line, " \n"))
	}
}
