package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/andybalholm/brotli"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Phases of one large set.
const (
	setApply  = "apply"
	setShrink = "shrink"
	setDelete = "delete"
)

var setPhases = []string{setApply, setShrink, setDelete}

// shrinkBy is the divisor for the documents that a shrinking set loses: one of this many.
const shrinkBy = 5

// set is one ManagedResource with published manifests.
type set struct {
	name string
	// documents are all manifests. Remaining are those after the set has shrunk.
	documents, remaining [][]byte
}

// readSet reads all YAML files of a directory. A shrinking set loses every fifth object, not counting Namespaces
// and CustomResourceDefinitions, because their deletion deletes other objects.
func readSet(dir string) (set, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err == nil && len(paths) == 0 {
		err = errors.New("the directory has no file *.yaml")
	}
	if err != nil {
		return set{}, fmt.Errorf("read the manifests in %s: %w", dir, err)
	}
	result := set{name: strings.ToLower(filepath.Base(dir))}
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			return set{}, fmt.Errorf("read manifests: %w", err)
		}
		documents, err := split(content)
		if err != nil {
			return set{}, fmt.Errorf("read %s: %w", path, err)
		}
		result.documents = append(result.documents, documents...)
	}
	removable := 0
	for _, document := range result.documents {
		var of metav1.TypeMeta
		if err := yaml.Unmarshal(document, &of); err != nil {
			return set{}, fmt.Errorf("read the kinds of the manifests in %s: %w", dir, err)
		}
		if of.Kind != "Namespace" && of.Kind != "CustomResourceDefinition" {
			if removable++; removable%shrinkBy == 0 {
				continue
			}
		}
		result.remaining = append(result.remaining, document)
	}
	return result, nil
}

// split returns the documents of a file, without empty ones.
func split(content []byte) ([][]byte, error) {
	var documents [][]byte
	for reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content))); ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil {
			return nil, err
		}
		var value any
		if err := yaml.Unmarshal(document, &value); err != nil {
			return nil, err
		}
		if value != nil {
			documents = append(documents, document)
		}
	}
}

// secretOf returns the Secret with documents. They are compressed because they may exceed the maximum size of a
// Secret.
func secretOf(w workload, documents [][]byte) (*corev1.Secret, error) {
	var compressed bytes.Buffer
	writer := brotli.NewWriter(&compressed)
	_, err := writer.Write(bytes.Join(documents, []byte("\n---\n")))
	if err := errors.Join(err, writer.Close()); err != nil {
		return nil, fmt.Errorf("compress manifests: %w", err)
	}
	key := w.key(0)
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Labels: map[string]string{labelSet: w.set}},
		Data:       map[string][]byte{"objects.yaml.br": compressed.Bytes()},
	}, nil
}

// setRun holds the measurements of one set with one program.
type setRun struct {
	Set     string           `json:"set"`
	Binary  string           `json:"binary"`
	Objects int              `json:"objects"`
	Phases  map[string]phase `json:"phases"`
}

// measureSets applies, shrinks and deletes every set with every program in turn.
func (b *bench) measureSets(ctx context.Context) ([]setRun, error) {
	var sets []set
	for _, dir := range b.options.Sets {
		read, err := readSet(dir)
		if err != nil {
			return nil, err
		}
		sets = append(sets, read)
	}
	var runs []setRun
	binaries := b.options.binaries()
	for round := range b.options.Rounds {
		for _, set := range sets {
			for _, binary := range binaries {
				run, err := b.measureSet(ctx, set, binary, len(runs))
				if err != nil {
					return runs, fmt.Errorf("%s with %s: %w", set.name, binary, err)
				}
				b.say("round %d: %s", round+1, run)
				runs = append(runs, run)
			}
		}
		slices.Reverse(binaries)
	}
	return runs, nil
}

func (r setRun) String() string {
	texts := []string{fmt.Sprintf("%s, %d objects, %s:", r.Set, r.Objects, r.Binary)}
	for _, name := range setPhases {
		measured := r.Phases[name]
		texts = append(texts, fmt.Sprintf("%s %.1fs (CPU %.2fs, %d requests)", name,
			measured.Seconds, measured.ManagerCPUSeconds, measured.Requests.Total()))
	}
	return strings.Join(texts, " ")
}

// measureSet makes one program apply one set, remove a fifth of it, and delete the rest.
func (b *bench) measureSet(ctx context.Context, s set, binary string, number int) (_ setRun, err error) {
	run := setRun{Set: s.name, Binary: binary, Objects: len(s.documents), Phases: map[string]phase{}}
	w := workload{set: fmt.Sprintf("%s-%d", s.name, number), resources: 1, objects: len(s.documents), namespaces: 1}
	whole, err := secretOf(w, s.documents)
	if err != nil {
		return run, err
	}
	fewer, err := secretOf(w, s.remaining)
	if err != nil {
		return run, err
	}
	if err := b.user.createNamespaces(ctx, w); err != nil {
		return run, err
	}
	options := b.options
	options.Binary = binary
	b.manager = b.newManager(fmt.Sprintf("resource-manager-%d", number), options.Binary)
	if err := b.manager.Start(ctx); err != nil {
		return run, err
	}
	defer func() { err = errors.Join(err, b.manager.Stop()) }()
	mr := w.managedResource(0)
	for _, step := range []struct {
		name string
		goal goal
		do   func(context.Context) error
	}{
		{setApply, applied, func(ctx context.Context) error {
			return errors.Join(b.user.client.Create(ctx, whole), b.user.client.Create(ctx, mr))
		}},
		{setShrink, applied, func(ctx context.Context) error { return b.user.client.Update(ctx, fewer) }},
		{setDelete, gone, func(ctx context.Context) error { return b.user.client.Delete(ctx, mr) }},
	} {
		measured, err := b.measure(ctx, step.name, w, step.goal, step.do)
		if err != nil {
			return run, err
		}
		if measured.Requests, err = b.countRequests(ctx); err != nil {
			return run, err
		}
		run.Phases[step.name] = measured
	}
	return run, nil
}

// publishSets writes the measurements to out and to the requested file.
func publishSets(runs []setRun, opts options, out io.Writer) error {
	content, err := json.MarshalIndent(runs, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the results: %w", err)
	}
	if opts.JSON != "" {
		if err := os.WriteFile(opts.JSON, append(content, '\n'), 0o600); err != nil {
			return fmt.Errorf("write the results: %w", err)
		}
	}
	text := string(content) + "\n"
	if opts.Output != "json" {
		text = setsTable(runs, opts.binaries())
	}
	_, err = io.WriteString(out, text)
	return err
}

// setsTable prints the median of every phase for every program, and the ratio of the other programs' times to that
// of the first one.
func setsTable(runs []setRun, binaries []string) string {
	var text strings.Builder
	var names []string
	for _, run := range runs {
		if !slices.Contains(names, run.Set) {
			names = append(names, run.Set)
		}
	}
	for _, name := range names {
		for _, phase := range setPhases {
			fmt.Fprintf(&text, "%-16s %-7s", name, phase)
			first := 0.0
			for i, binary := range binaries {
				seconds := medianOf(runs, name, phase, binary)
				fmt.Fprintf(&text, "  %s %.2fs", binary, seconds)
				if i == 0 {
					first = seconds
				} else if first > 0 {
					fmt.Fprintf(&text, " (× %.2f)", seconds/first)
				}
			}
			text.WriteString("\n")
		}
	}
	return text.String()
}

func medianOf(runs []setRun, set, phase, binary string) float64 {
	var seconds []float64
	for _, run := range runs {
		if run.Set == set && run.Binary == binary {
			seconds = append(seconds, run.Phases[phase].Seconds)
		}
	}
	if len(seconds) == 0 {
		return 0
	}
	slices.Sort(seconds)
	return seconds[len(seconds)/2]
}
