"""HRSC2016, DIOR-R and roLabelImg: folders of XML with rotated boxes."""
