package inspector_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	corev1 "k8s.io/api/core/v1"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/informer"
	"github.com/operatorkit/operatorkit/operator/inspector"
	"github.com/operatorkit/operatorkit/operator/inspector/graph"
)

// The pictures in docs are made anew by:
//
//	go test ./operator/inspector -run TestScreenshots -screenshots ../../docs
var screenshots = flag.String("screenshots", "", "folder to write pictures of the inspector to")

// maxScreenshot is how many bytes a picture may take.
const maxScreenshot = 200 << 10

// slow is a resource that takes its time, and fails for some.
func slow(name string, most time.Duration) framework.Resource {
	return &plain{name: name, do: func(ctx context.Context, site *corev1.ConfigMap) error {
		select {
		case <-time.After(time.Duration(rand.Int64N(int64(most)))):
		case <-ctx.Done():
		}
		if site.Labels[name] == failsKey {
			return errors.New("the issuer answers 429 Too Many Requests: try again later")
		}
		return nil
	}}
}

// picturesFolder is where pictures go: those that nobody asked for are thrown away.
func picturesFolder(t *testing.T) string {
	t.Helper()
	chromium(t) // before anything is made that only a browser sees
	if *screenshots == "" {
		return t.TempDir()
	}
	return *screenshots
}

func TestScreenshots(t *testing.T) {
	folder := picturesFolder(t)
	newSite := func(i, version int) *corev1.ConfigMap {
		s := site(fmt.Sprintf("website-%03d", i), "index.html", "<h1>Hello</h1>\n<p>Version "+fmt.Sprint(version)+"</p>", "replicas", fmt.Sprint(1+version%4))
		s.Namespace = []string{"shop", "team-blue", "team-green"}[i%3]
		s.Kind = "Website"
		if i%97 == 13 {
			s.Labels = map[string]string{"certificate": failsKey}
		}
		return s
	}
	var sites []*corev1.ConfigMap
	for i := range 240 {
		sites = append(sites, newSite(i, 0))
	}
	w := start(t, inspector.Config{Name: "website-operator"}, sites,
		slow("deployment", 60*time.Millisecond), slow("certificate", 30*time.Millisecond), slow("ingress", 15*time.Millisecond))
	changing, stop := context.WithTimeout(t.Context(), 100*time.Second)
	defer stop()
	ticker := time.NewTicker(500 * time.Millisecond)
	defer ticker.Stop()
	for version := 1; changing.Err() == nil; version++ {
		for range 1 + rand.IntN(4)*rand.IntN(12) {
			w.put(newSite(rand.IntN(240), version))
		}
		w.put(newSite(7, version))
		<-ticker.C
	}

	b := w.open("")
	b.pictures(folder, "inspector", "", nil)
	b.pictures(folder, "inspector-object", "object?framework="+kind+"&namespace=team-blue&name=website-007", nil)
}

// pictures writes a picture of a page in light and in dark to a folder, after what is done to it.
func (b *browser) pictures(folder, name, path string, do func(*browser)) {
	b.t.Helper()
	for _, scheme := range []string{"light", "dark"} {
		within(b, "choose "+scheme, chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
			_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
			})
			return err
		}))
		b.visit(path)
		b.shows("Live")
		if do != nil {
			do(b)
		}
		file := filepath.Join(folder, name+"-"+scheme+".png")
		writePicture(b.t, file, within(b, "take "+file, chromedp.CaptureScreenshot()))
	}
}

// platform draws the services of a cluster in the middle of an upgrade.
func platform(context.Context, *corev1.ConfigMap) ([]*graph.Graph, error) {
	node := func(name string, state graph.State, group, versions, message string, dependsOn ...string) graph.Node {
		n := graph.Node{ID: name, Label: name, State: state, Group: group, Versions: strings.Fields(versions), Message: message}
		for _, d := range dependsOn {
			d, held := strings.CutPrefix(d, "!")
			n.DependsOn = append(n.DependsOn, d)
			if held {
				n.WaitsFor = append(n.WaitsFor, d)
			}
		}
		return n
	}
	return []*graph.Graph{{Name: "services", Title: "Services of cluster platform/prod-eu", Nodes: []graph.Node{
		node("cert-manager", graph.Progressing, "platform", "1.14.2 1.15.0 1.17.1", "step 1 of 2 to 1.17.1"),
		node("cilium", graph.Ready, "platform", "1.17.4", ""),
		node("external-secrets", graph.Ready, "platform", "0.14.0", ""),
		node("ingress-nginx", graph.Waiting, "platform", "4.11.0 4.12.1", "cert-manager is on its way to 1.15.0", "!cert-manager", "cilium"),
		node("external-dns", graph.Ready, "platform", "1.15.2", "", "external-secrets", "cilium"),
		node("kof-operators", graph.Waiting, "observability", "1.1.0 1.2.0", "cert-manager is on its way to 1.15.0", "!cert-manager"),
		node("kof-storage", graph.Waiting, "observability", "1.1.0 1.2.0", "2 dependencies are not at their desired versions", "!kof-operators", "!ingress-nginx"),
		node("kof-collectors", graph.Waiting, "observability", "1.1.0 1.2.0", "kof-storage is not at 1.2.0", "!kof-storage"),
		node("postgres-operator", graph.Blocked, "data", "1.13.0 1.14.0", "no chain leads from 1.13.0 to 1.14.0", "external-secrets"),
		node("shop-database", graph.Waiting, "team-shop", "16.4 17.2", "postgres-operator is blocked", "!postgres-operator"),
		node("shop", graph.Ready, "team-shop", "2.9.1", "", "shop-database", "ingress-nginx", "external-dns"),
		node("old-dashboard", graph.Removing, "observability", "0.9.3", ""),
		node("velero", graph.Disabled, "platform", "8.1.0", "disabled by its owner"),
	}}}, nil
}

func TestGraphScreenshots(t *testing.T) {
	folder := picturesFolder(t)
	prod := site("prod-eu", "services", "13")
	prod.Namespace, prod.Kind = "platform", "ServiceSet"
	source := informer.NewPush("servicesets.operatorkit.io")
	if err := source.Update(prod); err != nil {
		t.Fatal(err)
	}
	config := inspector.Config{Name: "platform-operator", Logger: quiet(t)}
	w := startFramework(t, config, framework.Config{
		Name: source.Name(), Source: source,
		Resources: []framework.Resource{crudOf(t, config.Logger, &pages{written: map[string]*corev1.ConfigMap{}})},
	})
	w.inspector.Draw(w.framework, func(ctx context.Context, obj any) ([]*graph.Graph, error) {
		return platform(ctx, obj.(*corev1.ConfigMap))
	})
	w.reconciled(1)
	w.open("").pictures(folder, "inspector-graph", "object?framework="+source.Name()+"&namespace=platform&name=prod-eu", func(b *browser) {
		eval[bool](b, `document.getElementById("graph-node-kof-collectors").focus({ preventScroll: true }) || true`)
		b.traced("kof-collectors", "kof-storage", "kof-operators", "ingress-nginx", "cert-manager")
	})
}

// writePicture writes a picture in 256 colours, which are plenty for a page and make it small.
func writePicture(t testing.TB, file string, data []byte) {
	t.Helper()
	full, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	small := image.NewPaletted(full.Bounds(), commonColors(full))
	draw.Draw(small, small.Bounds(), full, image.Point{}, draw.Src)
	var b bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&b, small); err != nil {
		t.Fatal(err)
	}
	if b.Len() > maxScreenshot {
		t.Errorf("%s takes %d bytes, which is more than %d", file, b.Len(), maxScreenshot)
	}
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// commonColors returns the 256 colours that most of a picture has.
func commonColors(of image.Image) color.Palette {
	counts := map[color.RGBA]int{}
	for y := of.Bounds().Min.Y; y < of.Bounds().Max.Y; y++ {
		for x := of.Bounds().Min.X; x < of.Bounds().Max.X; x++ {
			counts[color.RGBAModel.Convert(of.At(x, y)).(color.RGBA)]++
		}
	}
	var colors color.Palette
	for c := range counts {
		colors = append(colors, c)
	}
	slices.SortFunc(colors, func(a, b color.Color) int { return counts[b.(color.RGBA)] - counts[a.(color.RGBA)] })
	return colors[:min(len(colors), 256)]
}
