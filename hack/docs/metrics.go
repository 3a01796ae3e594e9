package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"slices"
	"strings"
)

// metric is a metric that the code registers.
type metric struct {
	Name, Kind, Help string
	Labels           []string
	// Package is the directory of the package.
	Package string
}

// constructors are the constructors of client_golang, with the type of their metric.
var constructors = map[string]string{
	"NewCounter": "counter", "NewCounterVec": "counter", "NewGauge": "gauge", "NewGaugeVec": "gauge",
	"NewHistogram": "histogram", "NewHistogramVec": "histogram", "NewGaugeFunc": "gauge", "NewCounterFunc": "counter", "NewDesc": "",
}

// helperDirectory is the package with our own constructors. Their arguments are a registry, the name, the help text, the
// buckets in the case of NewHistogram, and the labels.
const helperDirectory = "pkg/metrics"

// metrics returns all metrics that the packages define.
func (c code) metrics() ([]metric, error) {
	var found []metric
	var failure error
	for _, directory := range c.directories() {
		s := c[directory]
		s.calls(func(name string, call *ast.CallExpr) bool {
			selector, is := call.Fun.(*ast.SelectorExpr)
			if _, known := constructors[name]; !known || !is || len(call.Args) == 0 {
				return true
			}
			of, is := selector.X.(*ast.Ident)
			if !is || of.Name != "prometheus" && of.Name != "metrics" || directory == helperDirectory {
				return true
			}
			read := s.metric
			if of.Name == "metrics" {
				read = s.ownMetric
			}
			one, err := read(name, call)
			if err != nil {
				failure = cmp.Or(failure, fmt.Errorf("a metric in %s: %w", directory, err))
			}
			if strings.HasPrefix(one.Name, "_") {
				return true // without a namespace: of another program, whose page lists it
			}
			one.Package = directory
			found = append(found, one)
			return true
		})
	}
	slices.SortFunc(found, func(a, b metric) int { return strings.Compare(a.Name, b.Name) })
	return found, failure
}

func (s *sources) metric(constructor string, call *ast.CallExpr) (metric, error) {
	one := metric{Kind: constructors[constructor]}
	var err error
	if constructor == "NewDesc" {
		one.Kind = "gauge"
		if one.Name, err = s.text(call.Args[0]); err != nil {
			return one, err
		}
		if strings.HasSuffix(one.Name, "_total") {
			one.Kind = "counter"
		}
		if one.Help, err = s.text(call.Args[1]); err != nil {
			return one, err
		}
		one.Labels, err = s.labels(call.Args[2])
		return one, err
	}
	options, is := call.Args[0].(*ast.CompositeLit)
	if !is {
		return one, fmt.Errorf("%s has no literal options", constructor)
	}
	fields := map[string]string{}
	for _, element := range options.Elts {
		pair, _ := element.(*ast.KeyValueExpr)
		key, is := pair.Key.(*ast.Ident)
		if !is || key.Name != "Namespace" && key.Name != "Name" && key.Name != "Help" {
			continue
		}
		if fields[key.Name], err = s.text(pair.Value); err != nil {
			return one, err
		}
	}
	one.Name, one.Help = fields["Namespace"]+"_"+fields["Name"], fields["Help"]
	if strings.HasSuffix(constructor, "Vec") {
		one.Labels, err = s.labels(call.Args[1])
	}
	return one, err
}

// ownMetric reads a call of a constructor in helperDirectory.
func (s *sources) ownMetric(constructor string, call *ast.CallExpr) (metric, error) {
	arguments := slices.Clone(call.Args[1:])
	if constructor == "NewHistogram" && len(arguments) > 2 {
		arguments = slices.Delete(arguments, 2, 3)
	}
	var texts []string
	for _, argument := range arguments {
		text, err := s.text(argument)
		if err != nil {
			return metric{}, err
		}
		texts = append(texts, text)
	}
	if len(texts) < 2 {
		return metric{}, fmt.Errorf("%s has no name and help text", constructor)
	}
	return metric{Kind: constructors[constructor], Name: "resource_manager_" + texts[0], Help: texts[1], Labels: texts[2:]}, nil
}

func (s *sources) labels(expression ast.Expr) ([]string, error) {
	list, is := expression.(*ast.CompositeLit)
	if !is {
		return nil, nil
	}
	var labels []string
	for _, element := range list.Elts {
		label, err := s.text(element)
		if err != nil {
			return nil, err
		}
		labels = append(labels, label)
	}
	return labels, nil
}

// metricsTable returns the metrics as a table.
func metricsTable(metrics []metric) string {
	var out strings.Builder
	out.WriteString("| metric | type | labels | what |\n|---|---|---|---|\n")
	for _, one := range metrics {
		labels := ""
		if len(one.Labels) > 0 {
			labels = "`" + strings.Join(one.Labels, "`, `") + "`"
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", one.Name, one.Kind, labels, cell(one.Help))
	}
	return out.String()
}
