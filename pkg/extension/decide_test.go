package extension

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-k8s/trellis/pkg/apis/core/v1beta1/constants"
	extensionsv1alpha1 "github.com/trellis-k8s/trellis/pkg/apis/extensions/v1alpha1"
)

const (
	finalizer = "extensions.gardener.cloud/infrastructure"

	succeeded, failing, processing = corev1beta1.LastOperationStateSucceeded, corev1beta1.LastOperationStateError, corev1beta1.LastOperationStateProcessing
	create, update                 = corev1beta1.LastOperationTypeCreate, corev1beta1.LastOperationTypeReconcile
	remove, migrate, restore       = corev1beta1.LastOperationTypeDelete, corev1beta1.LastOperationTypeMigrate, corev1beta1.LastOperationTypeRestore
)

var now = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// object returns an Infrastructure with a last operation and a requested operation.
func object(asked string, last *corev1beta1.LastOperation) *extensionsv1alpha1.Infrastructure {
	o := &extensionsv1alpha1.Infrastructure{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shoot--dev--blue", Name: "blue", Generation: 2, Finalizers: []string{finalizer}, Annotations: map[string]string{},
	}}
	if asked != "" {
		o.Annotations[constants.AnnotationGardenerOperation] = asked
	}
	o.Spec.Type = "local"
	o.Status.LastOperation, o.Status.ObservedGeneration = last, 2
	return o
}

func deleting(o *extensionsv1alpha1.Infrastructure) *extensionsv1alpha1.Infrastructure {
	o.DeletionTimestamp = ptr.To(metav1.NewTime(now))
	return o
}

func released(o *extensionsv1alpha1.Infrastructure) *extensionsv1alpha1.Infrastructure {
	o.Finalizers = nil
	return o
}

func last(of corev1beta1.LastOperationType, state corev1beta1.LastOperationState) *corev1beta1.LastOperation {
	return &corev1beta1.LastOperation{Type: of, State: state, LastUpdateTime: metav1.NewTime(now)}
}

func TestDecide(t *testing.T) {
	const none = corev1beta1.LastOperationType("")
	for name, test := range map[string]struct {
		object *extensionsv1alpha1.Infrastructure
		want   corev1beta1.LastOperationType
	}{
		"new":                             {object(constants.OperationReconcile, nil), create},
		"new, nothing asked":              {object("", nil), create},
		"creation failed":                 {object("", last(create, failing)), create},
		"creation failed, asked again":    {object(constants.OperationReconcile, last(create, failing)), create},
		"created":                         {object("", last(create, succeeded)), update},
		"asked":                           {object(constants.OperationReconcile, last(update, succeeded)), update},
		"reconciliation runs":             {object("", last(update, processing)), update},
		"waits for its state":             {object(constants.OperationWaitForState, nil), none},
		"waits for its state, deleting":   {deleting(object(constants.OperationWaitForState, nil)), none},
		"restored":                        {object(constants.OperationRestore, nil), restore},
		"restoration failed":              {object("", last(restore, failing)), restore},
		"after the restoration":           {object("", last(restore, succeeded)), update},
		"restored where it was":           {released(object(constants.OperationRestore, last(migrate, succeeded))), restore},
		"migrated":                        {object(constants.OperationMigrate, last(update, succeeded)), migrate},
		"migration failed":                {object(constants.OperationMigrate, last(migrate, failing)), migrate},
		"migration runs, deleting":        {deleting(object(constants.OperationMigrate, last(migrate, processing))), migrate},
		"was migrated":                    {released(object("", last(migrate, succeeded))), none},
		"was migrated, reconciliation":    {released(object(constants.OperationReconcile, last(migrate, succeeded))), none},
		"was migrated, deleting":          {released(deleting(object("", last(migrate, succeeded)))), none},
		"was migrated, deleting, migrate": {released(deleting(object(constants.OperationMigrate, last(migrate, succeeded)))), none},
		"deleting":                        {deleting(object("", last(update, succeeded))), remove},
		"deleting, reconciliation":        {deleting(object(constants.OperationReconcile, last(update, succeeded))), remove},
		"deleting, never begun":           {released(deleting(object("", nil))), none},
		"deletion failed":                 {deleting(object("", last(remove, failing))), remove},
		"another operation":               {object("something", last(update, succeeded)), update},
	} {
		t.Run(name, func(t *testing.T) {
			if got := decide(test.object, finalizer); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// TestBegins checks that requested and unfinished operations are found after a restart.
func TestBegins(t *testing.T) {
	older := object("", last(update, succeeded))
	older.Generation = 3
	for name, test := range map[string]struct {
		object  *extensionsv1alpha1.Infrastructure
		ignores bool
		want    bool
	}{
		"new": {object("", nil), false, true}, "at rest": {object("", last(update, succeeded)), false, false},
		"asked": {object(constants.OperationReconcile, last(update, succeeded)), false, true}, "failed": {object("", last(update, failing)), false, true},
		"running": {object("", last(update, processing)), false, true}, "deleting": {deleting(object("", last(update, succeeded))), false, true},
		"generation changed": {older, false, false}, "generation changed, without gardenlet": {older, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := begins(test.object, test.ignores); got != test.want {
				t.Errorf("%t, want %t", got, test.want)
			}
		})
	}
}

// TestAsks checks that only changes by other writers request an operation.
func TestAsks(t *testing.T) {
	at := func(o *extensionsv1alpha1.Infrastructure, timestamp string) *extensionsv1alpha1.Infrastructure {
		o.Annotations[constants.AnnotationGardenerTimestamp] = timestamp
		return o
	}
	rest := func() *extensionsv1alpha1.Infrastructure { return object("", last(update, succeeded)) }
	forced := deleting(rest())
	forced.Annotations[constants.AnnotationConfirmationForceDeletion] = "true"
	changed := rest()
	changed.Generation = 3
	for name, test := range map[string]struct {
		before, after *extensionsv1alpha1.Infrastructure
		ignores, want bool
	}{
		"asked":                {rest(), object(constants.OperationReconcile, nil), false, true},
		"asked once more":      {at(object(constants.OperationReconcile, nil), "1"), at(object(constants.OperationReconcile, nil), "2"), false, true},
		"begun":                {object(constants.OperationReconcile, nil), rest(), false, false},
		"its own status":       {object(constants.OperationMigrate, nil), object(constants.OperationMigrate, last(migrate, processing)), false, false},
		"state has come":       {object(constants.OperationWaitForState, nil), object(constants.OperationRestore, nil), false, true},
		"timestamp alone":      {at(rest(), "1"), at(rest(), "2"), false, false},
		"deleted":              {rest(), deleting(rest()), false, true},
		"forced":               {deleting(rest()), forced, false, true},
		"spec changed":         {rest(), changed, false, false},
		"spec changed, no let": {rest(), changed, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := asks(test.before, test.after, test.ignores); got != test.want {
				t.Errorf("%t, want %t", got, test.want)
			}
		})
	}
}

// TestAnnounced checks that an operation that is requested again is reported again with a new time, because gardenlet compares
// that time with its own.
func TestAnnounced(t *testing.T) {
	since := func(asked string, ago time.Duration, of *corev1beta1.LastOperation) *extensionsv1alpha1.Infrastructure {
		o := object(asked, of)
		o.Annotations[constants.AnnotationGardenerTimestamp] = now.Add(-ago).Format(time.RFC3339Nano)
		return o
	}
	for name, test := range map[string]struct {
		object    *extensionsv1alpha1.Infrastructure
		operation corev1beta1.LastOperationType
		want      bool
	}{
		"new":                       {object("", nil), create, false},
		"goes on":                   {object("", last(update, processing)), update, true},
		"is tried again":            {object("", last(update, failing)), update, true},
		"asked while it runs":       {object(constants.OperationReconcile, last(update, processing)), update, false},
		"another one":               {object("", last(create, processing)), remove, false},
		"finished":                  {object("", last(update, succeeded)), update, false},
		"migration goes on":         {since(constants.OperationMigrate, time.Minute, last(migrate, processing)), migrate, true},
		"in the same second":        {since(constants.OperationMigrate, -time.Millisecond, last(migrate, processing)), migrate, true},
		"migration was asked again": {since(constants.OperationMigrate, -time.Minute, last(migrate, failing)), migrate, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := announced(test.object, test.operation); got != test.want {
				t.Errorf("%t, want %t", got, test.want)
			}
		})
	}
}

func TestResponsible(t *testing.T) {
	o := object("", nil)
	seed := object("", nil)
	seed.Spec.Class = ptr.To(extensionsv1alpha1.ExtensionClassSeed)
	both := []extensionsv1alpha1.ExtensionClass{extensionsv1alpha1.ExtensionClassShoot, extensionsv1alpha1.ExtensionClassSeed}
	switch {
	case !Responsible(o, "local", nil), !Responsible(o, "local", both), !Responsible(seed, "local", both):
		t.Error("not responsible for an object of the type and class")
	case Responsible(o, "other", nil), Responsible(seed, "local", nil), Responsible(o, "local", both[1:]):
		t.Error("responsible for an object of another type or class")
	}
}
