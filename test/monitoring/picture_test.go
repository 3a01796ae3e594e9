package monitoring

import (
	"cmp"
	"context"
	"fmt"
	"html"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/trellis-k8s/trellis/test/kit"
)

// Grafana's columns and row heights, in pixels.
const (
	columnWidth = 66
	rowHeight   = 36
	chartTop    = 30
	axisWidth   = 58
	legendLine  = 15
)

// look is a colour scheme of the pictures.
type look struct{ name, back, panel, text, faint, grid string }

var looks = []look{
	{"dark", "#111217", "#181b1f", "#ccccdc", "#8e8e99", "#2c3037"},
	{"light", "#f4f5f5", "#ffffff", "#24292e", "#6b7280", "#e2e5e9"},
}

// lines are the colours of series, in Grafana's order.
var lines = []string{"#73bf69", "#e0b400", "#5794f2", "#ff9830", "#f2495c", "#b877d9", "#37872d", "#8ab8ff", "#c4162a", "#8f3bb8", "#96d98d", "#ffb357"}

// draw writes pictures of the dashboard in Grafana's layout, one for each look, and returns their paths. It does
// not replace Grafana. It shows how queries, units and legends look with real data.
func draw(t *testing.T, all []*panel, directory string) {
	t.Helper()
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Logf("no pictures: %v", err)
		return
	}
	directory, err = filepath.Abs(directory)
	kit.Must(t, err)
	kit.Must(t, os.MkdirAll(directory, 0o750))
	height := 0
	for _, p := range all {
		height = max(height, (p.GridPos.Y+p.GridPos.H)*rowHeight)
	}
	for _, l := range looks {
		page := filepath.Join(directory, "dashboard-"+l.name+".html")
		kit.Must(t, os.WriteFile(page, []byte(l.page(all, height)), 0o600))
		ctx, cancel := context.WithTimeout(t.Context(), kit.WaitTimeout)
		picture := strings.TrimSuffix(page, ".html") + ".png"
		output, err := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--user-data-dir="+t.TempDir(),
			fmt.Sprintf("--window-size=%d,%d", 24*columnWidth, height), "--screenshot="+picture, "file://"+page).CombinedOutput()
		cancel()
		if err != nil {
			t.Errorf("%v: %s", err, output)
		}
		t.Logf("wrote a picture of the dashboard to %s", picture)
	}
}

func (l look) page(all []*panel, height int) string {
	var page strings.Builder
	fmt.Fprintf(&page, `<!doctype html><meta charset="utf-8"><body style="margin:0;background:%s"><svg xmlns="http://www.w3.org/2000/svg" width='%d' height='%d' `+
		`font-family="Inter, Helvetica, Arial, sans-serif" font-size="12">`, l.back, 24*columnWidth, height)
	for _, p := range all {
		at := p.GridPos
		fmt.Fprintf(&page, `<svg x='%d' y='%d' width='%d' height='%d'>%s</svg>`, at.X*columnWidth, at.Y*rowHeight, at.W*columnWidth, at.H*rowHeight,
			l.draw(p, float64(at.W*columnWidth-6), float64(at.H*rowHeight-6)))
	}
	return page.String() + "</svg></body>"
}

// draw draws one panel.
func (l look) draw(p *panel, width, height float64) string {
	if p.Type == "row" {
		return fmt.Sprintf(`<text x="8" y="24" fill='%s' font-size="15">▾ %s</text>`, l.text, html.EscapeString(p.Title))
	}
	frame := fmt.Sprintf(`<rect x="3" y="3" width='%f' height='%f' rx="3" fill='%s' stroke='%s'/><text x="12" y="22" fill='%s' font-weight="500">%s</text>`,
		width, height, l.panel, l.grid, l.text, html.EscapeString(p.Title))
	switch p.Type {
	case "stat":
		return frame + stat(p, width, height)
	case "table":
		return frame + l.table(p)
	case "state-timeline":
		return frame + l.timeline(p, width)
	}
	return frame + l.chart(p, width, height)
}

// drawn is a series with the name in its legend.
type drawn struct {
	name   string
	metric map[string]string
	points [][2]float64
}

var inLegend = regexp.MustCompile(`{{\s*(\w+)\s*}}`)

func (p *panel) series() (all []drawn) {
	for _, target := range p.Targets {
		for _, one := range target.Result {
			d := drawn{metric: one.Metric}
			d.name = inLegend.ReplaceAllStringFunc(target.LegendFormat, func(label string) string { return one.Metric[inLegend.FindStringSubmatch(label)[1]] })
			for _, value := range one.Values {
				text, _ := value[1].(string)
				at, _ := value[0].(float64)
				if number, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(number) && !math.IsInf(number, 0) {
					d.points = append(d.points, [2]float64{at, number})
				}
			}
			if len(d.points) > 0 {
				all = append(all, d)
			}
		}
	}
	return all
}

func (d drawn) last() float64 { return d.points[len(d.points)-1][1] }

func (d drawn) most() float64 {
	return slices.MaxFunc(d.points, func(a, b [2]float64) int { return cmp.Compare(a[1], b[1]) })[1]
}

func stat(p *panel, width, height float64) string {
	text, colour := "No data", "green"
	if all := p.series(); len(all) > 0 {
		text = in(p.FieldConfig.Defaults.Unit, all[0].last())
		for _, step := range p.FieldConfig.Defaults.Thresholds.Steps {
			if step.Value == nil || all[0].last() >= *step.Value {
				colour = step.Color
			}
		}
	}
	colour = map[string]string{"green": "#73bf69", "orange": "#ff9830", "red": "#f2495c"}[colour]
	return fmt.Sprintf(`<text x='%f' y='%f' fill='%s' font-size="34" text-anchor="middle">%s</text>`, width/2, height/2+24, colour, text)
}

func (l look) table(p *panel) string {
	var text strings.Builder
	for i, one := range p.series() {
		if i > 10 {
			break
		}
		var cells []string
		for _, label := range []string{"managed_resource", "state", "condition", "status"} {
			if one.metric[label] != "" {
				cells = append(cells, one.metric[label])
			}
		}
		fmt.Fprintf(&text, `<text x="12" y='%d' fill='%s'>%s: %s</text>`, 46+i*20, l.text, html.EscapeString(strings.Join(cells, "  ")), in("short", one.last()))
	}
	return text.String()
}

// timeline draws the states named by the mappings.
func (l look) timeline(p *panel, width float64) string {
	var text strings.Builder
	names, colours := []string{"False", "Unknown", "True"}, []string{"#b877d9", "#ff9830", "#5794f2"}
	for i, one := range p.series() {
		y, right := float64(50+i*60), width-150
		fmt.Fprintf(&text, `<text x="12" y='%f' fill='%s'>%s</text>`, y+20, l.text, html.EscapeString(one.name))
		from, to := one.points[0][0], one.points[len(one.points)-1][0]
		for k, point := range one.points[:len(one.points)-1] {
			state := min(max(int(point[1]), 0), 2)
			x := 150 + right*(point[0]-from)/(to-from)
			fmt.Fprintf(&text, `<rect x='%f' y='%f' width='%f' height="32" fill='%s'/>`, x, y, right*(one.points[k+1][0]-point[0])/(to-from)+0.5, colours[state])
		}
		fmt.Fprintf(&text, `<text x="156" y='%f' fill="#fff">%s</text>`, y+20, names[min(max(int(one.last()), 0), 2)])
	}
	return text.String()
}

// in formats a number in a unit of Grafana.
func in(unit string, number float64) string {
	round := func(n float64) string { return strconv.FormatFloat(n, 'g', 3, 64) }
	switch size := math.Abs(number); {
	case unit == "bytes":
		return round(number/(1<<20)) + " MiB"
	case unit == "s" && size >= 86400:
		return round(number/86400) + " d"
	case unit == "s" && size >= 3600:
		return round(number/3600) + " h"
	case unit == "s" && size >= 60:
		return round(number/60) + " min"
	case unit == "s" && size > 0 && size < 0.001:
		return round(number*1e6) + " µs"
	case unit == "s" && size > 0 && size < 1:
		return round(number*1e3) + " ms"
	case unit == "s":
		return round(number) + " s"
	case unit == "ops" || unit == "reqps" || unit == "cpm":
		return round(number) + map[string]string{"ops": " ops/s", "reqps": " req/s", "cpm": " c/min"}[unit]
	case unit == "percentunit":
		return round(number*100) + " %"
	case size >= 1000:
		return round(number/1000) + " K"
	}
	return round(number)
}

func clock(at float64) string { return time.Unix(int64(at), 0).UTC().Format("15:04:05") }
