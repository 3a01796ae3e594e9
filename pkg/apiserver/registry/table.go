package registry

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apiserver/pkg/registry/rest"
)

// Column is a column of the table that kubectl prints.
type Column[T Object] struct {
	Name, Description string
	// Wide is set for columns that only kubectl get -o wide prints.
	Wide bool
	// AfterAge is set for columns that follow the age.
	AfterAge bool
	// Value returns a cell: a string or an integer.
	Value func(T) any
}

// table converts objects of a kind to tables.
type table[T Object] struct{ columns []Column[T] }

var _ rest.TableConvertor = table[Object]{}

// newTable adds the name as the first column and the age after the columns, as kubectl users expect.
func newTable[T Object](columns []Column[T]) table[T] {
	all := []Column[T]{{Name: "Name", Description: "Name of the object.", Value: func(o T) any { return o.GetName() }}}
	var behind []Column[T]
	for _, column := range columns {
		if column.AfterAge {
			behind = append(behind, column)
			continue
		}
		all = append(all, column)
	}
	all = append(all, Column[T]{Name: "Age", Description: "Time since the object was created.", Value: func(o T) any { return age(o) }})
	return table[T]{columns: append(all, behind...)}
}

func age(o metav1.Object) string {
	created := o.GetCreationTimestamp()
	if created.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(time.Since(created.Time))
}

// ConvertToTable implements rest.TableConvertor.
func (t table[T]) ConvertToTable(_ context.Context, object, options runtime.Object) (*metav1.Table, error) {
	result := &metav1.Table{Rows: []metav1.TableRow{}}
	if list, err := meta.ListAccessor(object); err == nil {
		result.ResourceVersion, result.Continue = list.GetResourceVersion(), list.GetContinue()
		result.RemainingItemCount = list.GetRemainingItemCount()
	} else if single, err := meta.CommonAccessor(object); err == nil {
		result.ResourceVersion = single.GetResourceVersion()
	}
	if asked, ok := options.(*metav1.TableOptions); !ok || !asked.NoHeaders {
		result.ColumnDefinitions = t.definitions()
	}
	add := func(object runtime.Object) error {
		row, ok := object.(T)
		if !ok {
			return fmt.Errorf("show a table row: got a %T", object)
		}
		result.Rows = append(result.Rows, metav1.TableRow{Cells: t.cells(row), Object: runtime.RawExtension{Object: object}})
		return nil
	}
	if meta.IsListType(object) {
		return result, meta.EachListItem(object, add)
	}
	return result, add(object)
}

func (t table[T]) cells(object T) []any {
	cells := make([]any, 0, len(t.columns))
	for _, column := range t.columns {
		cells = append(cells, column.Value(object))
	}
	return cells
}

func (t table[T]) definitions() []metav1.TableColumnDefinition {
	definitions := make([]metav1.TableColumnDefinition, 0, len(t.columns))
	for index, column := range t.columns {
		definition := metav1.TableColumnDefinition{Name: column.Name, Type: "string", Description: column.Description}
		if index == 0 { // CredentialsBindings have a second column with the title Name
			definition.Format = "name"
		}
		if column.Wide {
			definition.Priority = 1
		}
		definitions = append(definitions, definition)
	}
	return definitions
}
