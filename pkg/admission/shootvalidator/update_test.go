package shootvalidator

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/utils/ptr"

	"github.com/trellis-k8s/trellis/pkg/admission"
	"github.com/trellis-k8s/trellis/pkg/admission/admissiontest"
	gardencorev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	"github.com/trellis-k8s/trellis/pkg/issuer"
)

type edit func(*gardencorev1beta1.Shoot)

func worker(change func(*gardencorev1beta1.Worker)) edit {
	return func(shoot *gardencorev1beta1.Shoot) { change(&shoot.Spec.Provider.Workers[0]) }
}

func image(version string) edit {
	return worker(func(w *gardencorev1beta1.Worker) { w.Machine.Image.Version = ptr.To(version) })
}

func machine(name string) edit {
	return worker(func(w *gardencorev1beta1.Worker) { w.Machine.Type = name })
}

func version(text string) edit {
	return func(shoot *gardencorev1beta1.Shoot) { shoot.Spec.Kubernetes.Version = text }
}

func on(seed string) edit {
	return func(shoot *gardencorev1beta1.Shoot) { shoot.Spec.SeedName = &seed }
}

func all(edits ...edit) edit {
	return func(shoot *gardencorev1beta1.Shoot) {
		for _, one := range edits {
			one(shoot)
		}
	}
}

func scale(least int32) edit {
	return worker(func(w *gardencorev1beta1.Worker) { w.Minimum, w.Maximum = least, least })
}

// hosted says which Seed has the control plane.
func hosted(seed string) edit {
	return func(shoot *gardencorev1beta1.Shoot) { shoot.Status.SeedName = &seed }
}

func operation(kind gardencorev1beta1.LastOperationType, state gardencorev1beta1.LastOperationState) edit {
	return func(shoot *gardencorev1beta1.Shoot) {
		shoot.Status.LastOperation = &gardencorev1beta1.LastOperation{Type: kind, State: state}
	}
}

func label(shoot *gardencorev1beta1.Shoot) { shoot.Labels = map[string]string{"a": "b"} }

func survives(shoot *gardencorev1beta1.Shoot) {
	shoot.Spec.ControlPlane = &gardencorev1beta1.ControlPlane{HighAvailability: &gardencorev1beta1.HighAvailability{
		FailureTolerance: gardencorev1beta1.FailureTolerance{Type: gardencorev1beta1.FailureToleranceTypeZone},
	}}
}

func inPlace(shoot *gardencorev1beta1.Shoot) {
	shoot.Spec.Provider.Workers[0].UpdateStrategy = ptr.To(gardencorev1beta1.AutoInPlaceUpdate)
}

func managed(shoot *gardencorev1beta1.Shoot) {
	shoot.Annotations = map[string]string{constants.AnnotationAuthenticationIssuer: issuer.Managed}
}

// TestUpdates checks that an update is judged by what it changes.
func TestUpdates(t *testing.T) {
	t.Parallel()
	tolerates := func(shoot *gardencorev1beta1.Shoot) {
		shoot.Spec.Tolerations = []gardencorev1beta1.Toleration{{Key: "t"}}
	}
	stale := all(image("1.0.0"), machine("old"), version("1.34.7"))
	for name, test := range map[string]struct {
		// old is what the stored Shoot has, change what the update adds.
		old, change edit
		subresource string
		// want is a part of the error, or empty if there is none.
		want string
	}{
		"a label of a Shoot with all that is gone":        {old: all(stale, on("nowhere")), change: label},
		"the number of nodes of a pool with what is gone": {old: stale, change: scale(3)},
		"the image of a pool with an expired one":         {old: image("1.0.0"), change: image("1.1.0")},
		"another expired image":                           {old: image("2.0.0"), change: image("1.1.0"), want: "the version is expired"},
		"an older expired image":                          {old: image("1.1.0"), change: image("1.0.0"), want: "the version is expired"},
		"an image that the profile does not have":         {change: image("9.0.0"), want: "does not have this version of the machine image"},
		"an image for another kubelet":                    {change: image("3.0.0"), want: "supports kubelet >= 1.36"},
		"an image for another architecture":               {change: image("4.0.0"), want: "does not run on the machine type"},
		"an image in place":                               {old: all(inPlace, image("1.9.1")), change: image("2.0.0")},
		"an image in place that is too far":               {old: all(inPlace, image("1.8.0")), change: image("2.0.0"), want: "can be updated in place to this version of the machine image from 1.9.0 on"},
		"an image that cannot be updated in place":        {old: inPlace, change: image("3.0.0"), want: "cannot be updated in place"},
		"a version that the profile does not have":        {change: version("1.35.9"), want: "does not have this version of Kubernetes"},
		"a version that is not available yet":             {change: version("1.36.0"), want: "the version is unavailable"},
		"an expired version on the way to another":        {old: version("1.33.1"), change: version("1.34.7")},
		"a machine type that is not usable":               {change: machine("old"), want: "does not allow this machine type"},
		"a machine type that the zone lacks":              {change: worker(func(w *gardencorev1beta1.Worker) { w.Zones = []string{"a", "b"} }), want: `not available in the zone "b"`},
		"a zone that the region lacks":                    {change: worker(func(w *gardencorev1beta1.Worker) { w.Zones = []string{"a", "z"} }), want: "does not have this zone"},
		"a zone that the region lacks, already":           {old: worker(func(w *gardencorev1beta1.Worker) { w.Zones = []string{"z"} }), change: machine("large")},
		"a volume type that is not usable":                {change: worker(func(w *gardencorev1beta1.Worker) { w.Volume.Type = ptr.To("gone") }), want: "does not allow this volume type"},
		"a small volume":                                  {change: worker(func(w *gardencorev1beta1.Worker) { w.Volume.VolumeSize = "9Gi" }), want: "needs at least 10Gi"},
		"a small data volume": {change: worker(func(w *gardencorev1beta1.Worker) {
			w.DataVolumes = []gardencorev1beta1.DataVolume{{Name: "d", Type: ptr.To("fast"), VolumeSize: "1Gi"}}
		}), want: "dataVolumes[0].size"},
		"too many nodes":                        {change: scale(6), want: "add up to 6 nodes, but the CloudProfile allows 5"},
		"less nodes, but too many":              {old: scale(9), change: scale(8)},
		"a profile that does not exist":         {change: func(s *gardencorev1beta1.Shoot) { s.Spec.CloudProfile.Name = "none" }, want: `the CloudProfile "none" does not exist`},
		"credentials of another infrastructure": {change: func(s *gardencorev1beta1.Shoot) { s.Spec.SecretBindingName = ptr.To("foreign") }, want: `are for the type "gcp"`},
		"the domain of another Shoot":           {change: func(s *gardencorev1beta1.Shoot) { s.Spec.DNS = &gardencorev1beta1.DNS{Domain: ptr.To("x.example.net")} }, want: "a domain of another Shoot"},
		"a domain above another Shoot's":        {change: func(s *gardencorev1beta1.Shoot) { s.Spec.DNS = &gardencorev1beta1.DNS{Domain: ptr.To("example.net")} }, want: "a domain of another Shoot"},
		"a domain beside another Shoot's": {change: func(s *gardencorev1beta1.Shoot) {
			s.Spec.DNS = &gardencorev1beta1.DNS{Domain: ptr.To("ax.example.net")}
		}},
		"the managed issuer is switched off":    {old: managed, change: func(s *gardencorev1beta1.Shoot) { s.Annotations = nil }, want: "cannot be switched off"},
		"a seed by an update":                   {change: on("seed"), want: "only the subresource shoots/binding"},
		"a seed":                                {change: on("seed"), subresource: "binding"},
		"a seed that does not exist":            {change: on("nowhere"), subresource: "binding", want: `the Seed "nowhere" does not exist`},
		"the same seed":                         {old: on("seed"), change: on("seed"), subresource: "binding", want: "is on the Seed \"seed\" already"},
		"a seed with a taint":                   {change: on("other"), subresource: "binding", want: `has the taint "t"`},
		"a seed with a taint that is tolerated": {old: tolerates, change: on("other"), subresource: "binding"},
		"another seed":                          {old: all(tolerates, on("seed")), change: on("other"), subresource: "binding"},
		"another seed, not begun":               {old: all(on("other"), hosted("nowhere")), change: on("seed"), subresource: "binding"},
		"back, not begun":                       {old: all(tolerates, on("other"), hosted("seed")), change: on("seed"), subresource: "binding"},
		"back":                                  {old: all(tolerates, on("other"), hosted("seed"), operation("Migrate", "Error")), change: on("seed"), subresource: "binding"},
		"a third seed":                          {old: all(on("other"), hosted("seed"), operation("Migrate", "Processing")), change: on("nowhere"), subresource: "binding", want: `can be bound back to "seed" only`},
		"away again":                            {old: all(tolerates, on("seed"), hosted("seed"), operation("Migrate", "Error")), change: on("other"), subresource: "binding", want: `about to be restored on the Seed "seed"`},
		"back after it has left":                {old: all(tolerates, on("other"), hosted("other"), operation("Migrate", "Succeeded")), change: on("seed"), subresource: "binding", want: `being restored on the Seed "other"`},
		"back while it is restored":             {old: all(tolerates, on("other"), hosted("other"), operation("Restore", "Failed")), change: on("seed"), subresource: "binding", want: `being restored on the Seed "other"`},
		"back after it was restored":            {old: all(tolerates, on("other"), hosted("other"), operation("Restore", "Succeeded")), change: on("seed"), subresource: "binding"},
		"another seed without the default domain": {old: all(tolerates, on("seed"), func(s *gardencorev1beta1.Shoot) {
			s.Spec.DNS = &gardencorev1beta1.DNS{Domain: ptr.To("one.dev.example.org")}
		}), change: on("other"), subresource: "binding", want: "does not manage the default domain"},
		"a seed whose networks overlap":                       {old: func(s *gardencorev1beta1.Shoot) { s.Spec.Networking.Pods = ptr.To("10.16.0.0/12") }, change: on("seed"), subresource: "binding", want: "overlap with the nodes 10.20.0.0/16"},
		"networks that overlap with the seed":                 {old: on("seed"), change: func(s *gardencorev1beta1.Shoot) { s.Spec.Networking.Nodes = ptr.To("10.21.4.0/24") }, want: "overlap with the pods"},
		"a seed without networks":                             {old: func(s *gardencorev1beta1.Shoot) { s.Spec.Networking.Pods = nil }, change: on("seed"), subresource: "binding", want: "needs pods and services"},
		"high availability that the seed cannot give":         {old: on("seed"), change: survives, want: "has 1 zones"},
		"a change of a Shoot that moves":                      {old: all(on("seed"), operation("Migrate", "Processing")), change: scale(2), want: "moves to another Seed"},
		"a change of a Shoot that has moved":                  {old: all(on("seed"), operation("Restore", "Succeeded")), change: scale(2)},
		"a change of a Shoot in deletion is judged elsewhere": {change: all(image("9.0.0"), func(s *gardencorev1beta1.Shoot) { s.DeletionTimestamp = &metav1.Time{Time: now} })},
	} {
		old := parse[gardencorev1beta1.Shoot](t, shootYAML)
		if test.old != nil {
			test.old(old)
		}
		shoot := old.DeepCopy()
		test.change(shoot)
		garden := admissiontest.NewGarden(world(t), now)
		err := admission.Validate(t.Context(), Plugin.Rules, request(shoot, old, test.subresource), garden)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: error %v, want %q", name, err, test.want)
		}
	}
}

// unknown is a reader that does not know its objects yet.
type unknown[T any] struct {
	admission.Reader[*gardencorev1beta1.CloudProfile]
}

// Get implements admission.Reader.
func (unknown[T]) Get(context.Context, string, string) (*gardencorev1beta1.CloudProfile, error) {
	return nil, admission.Unavailable("not yet")
}

// TestUnknownProfiles checks that only decisions that need a CloudProfile fail while CloudProfiles are not known.
func TestUnknownProfiles(t *testing.T) {
	t.Parallel()
	garden := admissiontest.NewGarden(world(t), now)
	garden.CloudProfiles = unknown[struct{}]{}
	old := parse[gardencorev1beta1.Shoot](t, shootYAML)
	for name, test := range map[string]struct {
		change edit
		fails  bool
	}{
		"label": {label, false}, "machine type": {machine("large"), true},
		"purpose": {func(s *gardencorev1beta1.Shoot) { s.Spec.Purpose = ptr.To(gardencorev1beta1.ShootPurposeTesting) }, false},
	} {
		shoot := old.DeepCopy()
		test.change(shoot)
		err := admission.Validate(t.Context(), Plugin.Rules, request(shoot, old, ""), garden)
		if apierrors.IsServiceUnavailable(err) != test.fails || !test.fails && err != nil {
			t.Errorf("%s: %v, want 503: %t", name, err, test.fails)
		}
	}
	deletion := request(old, old, "")
	deletion.Operation, deletion.Object = apiadmission.Delete, nil
	if err := admission.Validate(t.Context(), Plugin.Rules, deletion, garden); err != nil {
		t.Errorf("deletion: %v", err)
	}
}

// TestCreate checks rules for new Shoots only.
func TestCreate(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change edit
		want   string
	}{
		"as it is":                 {label, ""},
		"in no Project":            {func(s *gardencorev1beta1.Shoot) { s.Namespace = "elsewhere" }, "belongs to no Project"},
		"a long name":              {func(s *gardencorev1beta1.Shoot) { s.Name = "a-name-of-nineteen-x" }, "choose a shorter name"},
		"expired version":          {version("1.34.7"), "the version is expired"},
		"without the kubeconfig":   {withPlugin("empty"), `must have the key "kubeconfig"`},
		"without the right":        {withPlugin("unlisted"), `add the Secret "unlisted"`},
		"with the managed issuer":  {managed, "has no managed issuer"},
		"on a Seed, and it is one": {on("seed"), ""},
	} {
		shoot := parse[gardencorev1beta1.Shoot](t, shootYAML)
		test.change(shoot)
		err := admission.Validate(t.Context(), Plugin.Rules, request(shoot, nil, ""), admissiontest.NewGarden(world(t), now))
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: error %v, want %q", name, err, test.want)
		}
	}
}

// TestManagedIssuer checks in which gardens and with which Shoots the managed issuer can be switched on.
func TestManagedIssuer(t *testing.T) {
	t.Parallel()
	host := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: "garden", Name: "issuer", Labels: map[string]string{constants.LabelGardenRole: constants.RoleShootServiceAccountIssuer},
	}}
	own := func(s *gardencorev1beta1.Shoot) {
		s.Spec.Kubernetes.KubeAPIServer = &gardencorev1beta1.KubeAPIServerConfig{ServiceAccountConfig: &gardencorev1beta1.ServiceAccountConfig{Issuer: ptr.To("https://own.example.org")}}
	}
	for name, test := range map[string]struct {
		old, change edit
		host        bool
		want        string
	}{
		"in a garden without one":          {change: managed, want: "has no managed issuer"},
		"in a garden with one":             {change: managed, host: true},
		"with an issuer of its own":        {change: all(managed, own), host: true, want: "serviceAccountConfig.issuer"},
		"switched on":                      {old: label, change: managed, host: true},
		"switched on without one":          {old: label, change: managed, want: "has no managed issuer"},
		"the garden has lost it":           {old: managed, change: all(managed, machine("large"))},
		"switched off":                     {old: managed, change: func(s *gardencorev1beta1.Shoot) { s.Annotations = nil }, host: true, want: "cannot be switched off"},
		"an issuer of its own is added":    {old: managed, change: all(managed, own), host: true, want: "serviceAccountConfig.issuer"},
		"only an issuer of its own, again": {old: own, change: all(own, machine("large"))},
	} {
		var old *gardencorev1beta1.Shoot
		if test.old != nil {
			old = parse[gardencorev1beta1.Shoot](t, shootYAML)
			test.old(old)
		}
		shoot := parse[gardencorev1beta1.Shoot](t, shootYAML)
		test.change(shoot)
		objects := world(t)
		if test.host {
			objects = append(objects, host)
		}
		err := admission.Validate(t.Context(), Plugin.Rules, request(shoot, old, ""), admissiontest.NewGarden(objects, now))
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: error %v, want %q", name, err, test.want)
		}
	}
}

// withPlugin adds an admission plugin with a Secret, which is among the resources if it is called empty.
func withPlugin(secret string) edit {
	return func(shoot *gardencorev1beta1.Shoot) {
		shoot.Spec.Kubernetes.KubeAPIServer = &gardencorev1beta1.KubeAPIServerConfig{AdmissionPlugins: []gardencorev1beta1.AdmissionPlugin{{Name: "P", KubeconfigSecretName: &secret}}}
		reference := gardencorev1beta1.NamedResourceReference{Name: "empty"}
		reference.ResourceRef.APIVersion, reference.ResourceRef.Kind, reference.ResourceRef.Name = "v1", "Secret", "empty"
		shoot.Spec.Resources = []gardencorev1beta1.NamedResourceReference{reference}
	}
}
