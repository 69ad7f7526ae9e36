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
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	corev1 "k8s.io/api/core/v1"

	"github.com/operatorkit/operatorkit/framework"
	"github.com/operatorkit/operatorkit/operator/inspector"
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

func TestScreenshots(t *testing.T) {
	if *screenshots == "" {
		t.Skip("pictures are written with -screenshots FOLDER only")
	}
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
	for name, path := range map[string]string{"inspector": "", "inspector-object": "object?framework=" + kind + "&namespace=team-blue&name=website-007"} {
		for _, scheme := range []string{"light", "dark"} {
			within(b, "choose "+scheme, chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
				_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
					Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
				})
				return err
			}))
			b.visit(path)
			b.shows("Live")
			file := filepath.Join(*screenshots, name+"-"+scheme+".png")
			writePicture(t, file, within(b, "take "+file, chromedp.CaptureScreenshot()))
		}
	}
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
