package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// fleetProject is the example Project.
	fleetProject = "dev"
	// explainedLines is the number of lines of a field's explanation that the tour shows.
	explainedLines = 14
)

// fleet are the examples that the tour declares, ordered by their references.
var fleet = []string{"project", "cloudprofile", "seed", "shoot"}

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

// declare declares a small fleet at the garden's API server, and prints it as users see it.
func (g *guide) declare(ctx context.Context) error {
	g.heading("5 of 5: declare a fleet (a few seconds)")
	g.say(`The garden's API server has the kinds of a fleet. kube-apiserver passes requests for them on to it, so that kubectl
works as with all other kinds. The controller-manager makes the namespace of the Project, and the rights of its members. What
makes clusters of Shoots does not run here.
`)
	// The Project of the namespace garden allows its Shoots to use protected Seeds.
	own := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Project",
		"metadata": map[string]any{"name": "garden"}, "spec": map[string]any{"namespace": "garden"},
	}}
	if err := client.IgnoreAlreadyExists(g.client.Create(ctx, own)); err != nil {
		return fmt.Errorf("creating Project %s: %w", own.GetName(), err)
	}
	for _, name := range fleet {
		file := "fleet/core/" + name + ".yaml"
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
		if name == "project" {
			if err := g.awaitProject(ctx, fleetProject); err != nil {
				return err
			}
		}
	}
	for _, command := range []string{"get projects,cloudprofiles,seeds", "get shoots -A"} {
		g.say("\n  $ kubectl %s", command)
		output, err := g.kubectl.output(ctx, nil, strings.Fields(command)...)
		if err != nil {
			return err
		}
		g.show(output)
	}
	return g.explain(ctx, "shoot.spec.provider.workers")
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
