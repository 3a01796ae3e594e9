package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"

	"github.com/andybalholm/brotli"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	resourcesv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/resources/v1alpha1"
)

// compressedKey is the key of manifests that are compressed with Brotli, which its suffix says.
const compressedKey = "data.yaml.br"

// delivery is a folder of manifests that travels as one ManagedResource.
type delivery struct {
	name     string
	folder   string
	compress bool
}

// parcel is what a delivery is written as.
type parcel struct {
	delivery
	secret *corev1.Secret
	mr     *resourcesv1alpha1.ManagedResource
	files  int
	size   int // of the manifests
}

// pack puts the manifests of a folder into a Secret and makes the ManagedResource for it.
func (d delivery) pack(files fs.FS) (*parcel, error) {
	manifests, err := readManifests(files, d.folder)
	if err != nil {
		return nil, err
	}
	p := &parcel{delivery: d, files: len(manifests)}
	for _, content := range manifests {
		p.size += len(content)
	}
	data := manifests
	if d.compress {
		if data, err = compress(manifests); err != nil {
			return nil, fmt.Errorf("compressing the manifests of %s: %w", d.folder, err)
		}
	}
	p.secret = d.secret(data)
	p.mr = &resourcesv1alpha1.ManagedResource{ObjectMeta: metav1.ObjectMeta{Namespace: tourNamespace, Name: d.name}}
	return p, nil
}

func readManifests(files fs.FS, folder string) (map[string][]byte, error) {
	paths, err := fs.Glob(files, path.Join(folder, "*.yaml"))
	if err != nil {
		return nil, fmt.Errorf("looking for manifests in %s: %w", folder, err)
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("there are no manifests in %s", folder)
	}
	manifests := map[string][]byte{}
	for _, name := range paths {
		if manifests[path.Base(name)], err = fs.ReadFile(files, name); err != nil {
			return nil, fmt.Errorf("reading the manifest %s: %w", name, err)
		}
	}
	return manifests, nil
}

// compress puts all manifests into one compressed value.
func compress(manifests map[string][]byte) (map[string][]byte, error) {
	var all bytes.Buffer
	writer := brotli.NewWriterLevel(&all, brotli.BestCompression)
	for _, name := range slices.Sorted(maps.Keys(manifests)) {
		if _, err := fmt.Fprintf(writer, "---\n%s\n", manifests[name]); err != nil {
			return nil, err
		}
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return map[string][]byte{compressedKey: all.Bytes()}, nil
}

// secret is named after its content and immutable: other manifests go into another Secret, and the ManagedResource
// changes over to it in one write. The label lets a garbage collector delete it once nothing refers to it.
func (d delivery) secret(data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: tourNamespace,
			Name:      d.name + "-" + contentHash(data),
			Labels:    map[string]string{resourcesv1alpha1.LabelGarbageCollectableReference: "true"},
		},
		Immutable: ptr.To(true),
		Data:      data,
	}
}

func contentHash(data map[string][]byte) string {
	hash := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(data)) {
		fmt.Fprintf(hash, "%d:%s%d:%s", len(key), key, len(data[key]), data[key])
	}
	return shortHash(hash.Sum(nil))
}

func shortHash(sum []byte) string { return hex.EncodeToString(sum)[:8] }

// write creates the Secret, unless it is there, and lets the ManagedResource name it. It tells whether that changed
// the ManagedResource.
func (p *parcel) write(ctx context.Context, c client.Client) (bool, error) {
	if err := client.IgnoreAlreadyExists(c.Create(ctx, p.secret)); err != nil {
		return false, fmt.Errorf("creating Secret %s: %w", client.ObjectKeyFromObject(p.secret), err)
	}
	result, err := controllerutil.CreateOrPatch(ctx, c, p.mr, func() error {
		// The reference that the garbage collector looks for.
		sum := sha256.Sum256([]byte(p.secret.Name))
		p.mr.Annotations = map[string]string{
			"reference.resources.gardener.cloud/secret-" + shortHash(sum[:]): p.secret.Name,
		}
		p.mr.Spec = resourcesv1alpha1.ManagedResourceSpec{
			SecretRefs: []resourcesv1alpha1.LocalObjectReference{{Name: p.secret.Name}},
		}
		return nil
	})
	if err != nil {
		return false, fmt.Errorf("writing ManagedResource %s: %w", client.ObjectKeyFromObject(p.mr), err)
	}
	return result != controllerutil.OperationResultNone, nil
}

// awaitApplied waits until all ManagedResources are applied, and calls report whenever what one of them says changes.
func awaitApplied(ctx context.Context, c client.Client, parcels []*parcel,
	report func(name string, condition resourcesv1alpha1.Condition),
) error {
	reported := map[string]string{}
	err := wait.PollUntilContextTimeout(ctx, tourInterval, tourTimeout, true, func(ctx context.Context) (bool, error) {
		missing := len(parcels)
		for _, p := range parcels {
			if err := c.Get(ctx, client.ObjectKeyFromObject(p.mr), p.mr); err != nil {
				return false, err
			}
			condition := appliedCondition(p.mr)
			if condition.Status == resourcesv1alpha1.ConditionTrue {
				missing--
			}
			if says := fmt.Sprintf("%s: %s", condition.Reason, condition.Message); says != reported[p.name] {
				reported[p.name] = says
				report(p.name, condition)
			}
		}
		return missing == 0, nil
	})
	if err == nil {
		return nil
	}
	for _, p := range parcels {
		if condition := appliedCondition(p.mr); condition.Status != resourcesv1alpha1.ConditionTrue {
			return fmt.Errorf("ManagedResource %s was not applied (%s: %s), resource-manager.log may tell more: %w",
				client.ObjectKeyFromObject(p.mr), condition.Reason, condition.Message, err)
		}
	}
	return fmt.Errorf("waiting for the ManagedResources: %w", err)
}

// appliedCondition returns what a ManagedResource says about its present spec.
func appliedCondition(mr *resourcesv1alpha1.ManagedResource) resourcesv1alpha1.Condition {
	for _, condition := range mr.Status.Conditions {
		outdated := condition.Status == resourcesv1alpha1.ConditionTrue && mr.Status.ObservedGeneration != mr.Generation
		if condition.Type == resourcesv1alpha1.ResourcesApplied && !outdated {
			return condition
		}
	}
	return resourcesv1alpha1.Condition{
		Status: resourcesv1alpha1.ConditionUnknown, Reason: "Waiting", Message: "The resource-manager has not looked at it yet.",
	}
}

// describe says what is in the parcel.
func (p *parcel) describe() string {
	how := "as plain YAML"
	if p.compress {
		how = fmt.Sprintf("compressed with Brotli to %d", len(p.secret.Data[compressedKey]))
	}
	return fmt.Sprintf("%d manifests, %d bytes %s, in Secret %s", p.files, p.size, how, client.ObjectKeyFromObject(p.secret))
}
